#include "transforms/simplify/turned_products.h"
#include "ir/rewrite.h"
#include "transforms/analysis/operators.h"
#include <algorithm>

namespace scalide {

namespace {

/// By value: how many operands and results read it.
std::vector<int> count_reads(const Program &program) {
    std::vector<int> counts(program.values.size());
    for (const Node &node : program.nodes)
        for (const ValueId operand : node.operands) ++counts[operand];
    for (const Result &result : program.results) ++counts[result.value];
    return counts;
}

/// Returns the permutation that turns the result of `dot` into the result of the dot_general with exchanged operands. That result has the
/// batch axes, then the free axes of the right operand, then those of the left one.
std::vector<int64_t> exchanged_order(const Program &program, const Node &dot) {
    const DotAxes axes = dot_axes(dot);
    const auto batches = std::ssize(axes.lhs_batch);
    const int64_t rank = program.type(dot.results[0]).rank();
    const int64_t of_lhs = program.type(dot.operands[0]).rank() - batches - std::ssize(axes.lhs_contract);
    std::vector<int64_t> order = count_up(rank);
    std::ranges::rotate(order.begin() + batches, order.begin() + batches + of_lhs, order.end());
    return order;
}

Node exchanged(const Node &dot) {
    Node fresh = dot;
    std::ranges::reverse(fresh.operands);
    DotAxes axes = dot_axes(dot);
    std::swap(axes.lhs_contract, axes.rhs_contract);
    std::swap(axes.lhs_batch, axes.rhs_batch);
    for (const auto &[name, value] : dot_attributes(axes, Dtype::f32))
        if (name != "preferred") fresh.attributes[name] = value;
    return fresh;
}

} // namespace

Program turn_products(const Program &program) {
    const std::vector<int> makers = producers(program), reads = count_reads(program);
    const auto turned_product = [&](const Node &node) -> const Node * {
        if (node.op != "transpose" || makers[node.operands[0]] < 0 || reads[node.operands[0]] != 1) return nullptr;
        const Node &dot = program.nodes[makers[node.operands[0]]];
        return dot.op == "dot_general" && permutation(node) == exchanged_order(program, dot) ? &dot : nullptr;
    };
    Rewriter rewriter(program);
    rewriter.copy_arguments();
    for (const Node &node : program.nodes) {
        if (const Node *dot = turned_product(node)) {
            Node fresh = exchanged(*dot);
            fresh.results = node.results;
            rewriter.copy(fresh);
        } else {
            rewriter.copy(node);
        }
    }
    rewriter.copy_results();
    return rewriter.take();
}

} // namespace scalide
