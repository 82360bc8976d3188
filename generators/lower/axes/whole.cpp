#include "lower/axes/whole.h"
#include "ir/reduction_axes.h"
#include "ir/rewrite.h"
#include "lower/rows/reduction.h"
#include <numeric>
#include <set>

namespace scalide {
namespace {

int space_rank(const Program &program) {
    int rank = 0;
    for (const Node &node : program.nodes) {
        if (is_reduction(node)) rank = std::max(rank, program.type(node.operands[0]).rank());
    }
    return rank;
}

std::vector<int64_t> first_axes(int count) {
    std::vector<int64_t> axes(count);
    std::iota(axes.begin(), axes.end(), 0);
    return axes;
}

ValueId reduce(Program &program, const Node &like, ValueId operand, const std::vector<int64_t> &axes, const std::string &name) {
    Node node = like;
    node.operands = {operand};
    node.attributes["axes"] = to_attribute(axes);
    Type type = program.type(operand);
    for (size_t i = axes.size(); i-- > 0;) type.shape.erase(type.shape.begin() + axes[i]);
    return add_node(program, node, {type}, name)[0];
}

std::vector<const Node *> whole_reductions(const Program &program) {
    std::vector<const Node *> nodes;
    for (const Node &node : program.nodes) {
        if (is_whole_reduction(program, node)) nodes.push_back(&node);
    }
    return nodes;
}

} // namespace

bool is_whole_reduction(const Program &program, const Node &node) {
    return is_reduction(node) && program.type(node.operands[0]).rank() < space_rank(program);
}

Program reduce_columns_first(const Program &program) {
    Rewriter rewriter(program);
    rewriter.copy_arguments();
    for (const Node &node : program.nodes) {
        const int rank = is_reduction(node) ? program.type(node.operands[0]).rank() : 0;
        if (rank < 2 || !program.type(node.results[0]).is_scalar()) {
            rewriter.copy(node);
            continue;
        }
        const std::string &name = program.value_name(node.results[0]);
        const ValueId rows = reduce(rewriter.result(), node, rewriter(node.operands[0]), {rank - 1}, name + "_rows");
        rewriter.map(node.results[0], reduce(rewriter.result(), node, rows, first_axes(rank - 1), name));
    }
    rewriter.copy_results();
    return rewriter.take();
}

std::vector<Halide::Func> store_reduced(Lowering &lowering, const std::vector<Halide::Var> &axes) {
    std::vector<Halide::Func> stored;
    std::set<ValueId> seen;
    for (const Node *node : whole_reductions(lowering.kernel.program)) {
        const ValueId value = node->operands[0];
        if (!seen.insert(value).second) continue;
        Halide::Func func("stored_" + std::to_string(stored.size()));
        const Dtype dtype = lowering.kernel.program.type(value).dtype;
        func(buffer_order(axes)) = to_word(dtype, lowering.values.at(value, Index(axes.begin(), axes.end())));
        // Without bounds, Halide would compute what the reductions read, rounded up to their blocks, and the loops would differ.
        for (size_t i = 0; i < axes.size(); i++) {
            func.bound(axes[i], 0, lowering.values.extent(lowering.kernel.program.type(value).shape[i]));
        }
        stored.push_back(func);
    }
    return stored;
}

TotalStages reduce_stored(Lowering &lowering, const std::vector<Halide::Func> &stored) {
    const std::vector<const Node *> nodes = whole_reductions(lowering.kernel.program);
    size_t next = 0;
    std::set<ValueId> seen;
    for (const Node *node : nodes) {
        if (seen.insert(node->operands[0]).second) lowering.values.bind(node->operands[0], stored.at(next++));
    }
    TotalStages stages;
    reduce_all(lowering, nodes, stages);
    return stages;
}

} // namespace scalide
