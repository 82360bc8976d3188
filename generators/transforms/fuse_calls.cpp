#include "transforms/fuse_calls.h"
#include "expr/base_operators.h"
#include "ir/rewrite.h"
#include "ir/shape.h"
#include "transforms/fuse_overwrites.h"
#include "transforms/matmul_form.h"
#include "transforms/operators.h"
#include <algorithm>

namespace scalide {

namespace {

/// The row of the target's table for a dot_general; null when no library computes it.
const LibraryProduct *find_product(const Program &program, const Node &node, const TargetFacts &facts) {
    if (node.op != "dot_general" || facts.products.empty()) return nullptr;
    const auto form = matmul_form(program, node);
    if (!form) return nullptr;
    const Dtype lhs = program.type(form->lhs.value).dtype, rhs = program.type(form->rhs.value).dtype;
    const auto row = std::ranges::find_if(facts.products, [&](const LibraryProduct &p) { return p.lhs == lhs && p.rhs == rhs; });
    return row == facts.products.end() ? nullptr : &*row;
}

/// Rewrites dot_generals to read their operands as a library does.
class OperandWriter {
public:
    explicit OperandWriter(Rewriter &rewriter) : rewriter_(rewriter), source_(rewriter.source()), makers_(producers(source_)) {}

    void write(const Node &dot, const LibraryProduct &product) {
        const MatmulForm form = *matmul_form(source_, dot);
        DotAxes axes = dot_axes(dot);
        Node written = dot;
        const bool along_k = product.k_contiguous;
        written.operands = {operand(dot, 0, form.lhs, along_k, axes.lhs_contract, axes.lhs_batch),
                            operand(dot, 1, form.rhs, along_k, axes.rhs_contract, axes.rhs_batch)};
        const Type type = source_.type(dot.results[0]);
        written.attributes = dot_attributes(axes, type.dtype);
        rewriter_.map(dot.results[0], add_node(rewriter_.result(), written, {type}, source_.value_name(dot.results[0]))[0]);
    }

private:
    /// The axes are those of the operand that is returned.
    ValueId operand(const Node &dot, int index, const MatmulOperand &form, bool along_k, std::vector<int64_t> &contract,
                    std::vector<int64_t> &batch) {
        const ValueId value = dot.operands[index];
        const bool lies_well = !along_k || form.k_contiguous;
        if (lies_well && is_in_memory(form.value)) return rewriter_(value);
        const int maker = makers_[value];
        const bool decodes = maker >= 0 && is_decoding(source_, source_.nodes[maker]);
        const ValueId narrow = decodes ? source_.nodes[maker].operands[0] : value;
        std::vector<int64_t> order = count_up(source_.type(value).rank());
        if (!lies_well) {
            order = other_axes(std::ssize(order), contract);
            order.push_back(contract[0]);
        }
        for (std::vector<int64_t> *axes : {&contract, &batch})
            for (int64_t &axis : *axes) axis = std::ranges::find(order, axis) - order.begin();
        const auto [known, is_new] = copies_.emplace(std::pair(narrow, order), -1);
        if (is_new) known->second = copy(dot, rewriter_(narrow), order);
        return decodes ? add(dot, "convert_element_type", known->second, convert_attributes(Dtype::f32),
                             {Dtype::f32, rewriter_.result().type(known->second).shape})
                       : known->second;
    }

    ValueId copy(const Node &dot, ValueId value, const std::vector<int64_t> &order) {
        const Type from = rewriter_.result().type(value);
        Type type{from.dtype, {}};
        for (const int64_t axis : order) type.shape.push_back(from.shape[axis]);
        if (!std::ranges::is_sorted(order)) value = add(dot, "transpose", value, transpose_attributes(order), type);
        return add(dot, "reshape", value, reshape_attributes(type.shape), type);
    }

    ValueId add(const Node &dot, const std::string &op, ValueId operand, Attributes attributes, const Type &type) {
        Node node = dot;
        node.op = op;
        node.operands = {operand};
        node.attributes = std::move(attributes);
        return add_node(rewriter_.result(), node, {type}, "")[0];
    }

    /// Arguments, and what is stored in any case: reductions and the like, and what is rounded.
    bool is_in_memory(ValueId value) const {
        const int maker = makers_[value];
        if (maker < 0) return true;
        const Node &node = source_.nodes[maker];
        const Shape shape = find_base_operator(node.op)->shape;
        const bool is_made_late = shape == Shape::elementwise || shape == Shape::movement || shape == Shape::source;
        return !is_made_late || is_rounding(source_, node) || is_copy(source_, node);
    }

    Rewriter &rewriter_;
    const Program &source_;
    const std::vector<int> makers_;
    std::map<std::pair<ValueId, std::vector<int64_t>>, ValueId> copies_; ///< by what is copied and the order of its axes
};

/// The only node that reads what a group makes, when it may join the group; -1 else. What an operand's argument holds afterwards may not:
/// it would be overwritten while the product reads it.
int only_reader(const Groups &groups, int group) {
    const ValueId value = groups.program().nodes[groups[group].nodes.back()].results[0];
    const std::vector<Read> &readers = groups.graph().readers(value);
    if (readers.size() != 1 || readers[0].access != Access::same || groups.graph().is_result(value)) return -1;
    const int other = groups.group_of(readers[0].reader);
    const bool may_join = !groups.has_path_around(group, other) && overwrites_safely(groups, nodes_of(groups, group, other));
    return may_join ? readers[0].reader : -1;
}

/// A product with one rank-0 value.
bool multiplies_by_scalar(const Groups &groups, int reader) {
    const Program &program = groups.program();
    const std::vector<Read> &reads = groups.graph().reads(reader);
    return program.nodes[reader].op == "mul" && reads.size() == 2 && std::ranges::count(reads, Access::scalar, &Read::access) == 1 &&
           std::ranges::all_of(reads, [&](const Read &read) {
               return read.access == Access::same || (program.type(read.value).is_scalar() && program.type(read.value).dtype == Dtype::f32);
           });
}

bool converts(const Groups &groups, int reader, const LibraryProduct &product) {
    const Program &program = groups.program();
    const Node &node = program.nodes[reader];
    return is_rounding(program, node) && std::ranges::find(product.results, program.type(node.results[0]).dtype) != product.results.end();
}

} // namespace

Program store_call_operands(const Program &program, const TargetFacts &facts) {
    if (facts.products.empty()) return program;
    Rewriter rewriter(program);
    rewriter.copy_arguments();
    OperandWriter writer(rewriter);
    for (const Node &node : program.nodes) {
        if (const LibraryProduct *product = find_product(program, node, facts))
            writer.write(node, *product);
        else
            rewriter.copy(node);
    }
    rewriter.copy_results();
    return rewriter.take();
}

void merge_calls(Groups &groups, const TargetFacts &facts) {
    for (int group = 0; group < groups.size(); ++group) {
        if (!groups.is_alive(group) || groups[group].kind != KernelKind::contract) continue;
        const LibraryProduct *product = find_product(groups.program(), groups.program().nodes[groups[group].nodes[0]], facts);
        if (!product) continue;
        const auto take = [&](int reader) {
            Group merged = groups[group];
            groups.merge(group, groups.group_of(reader), merged);
        };
        groups.set_library(group, product->library);
        if (const int reader = only_reader(groups, group); reader >= 0 && multiplies_by_scalar(groups, reader)) take(reader);
        if (const int reader = only_reader(groups, group); reader >= 0 && converts(groups, reader, *product)) take(reader);
    }
}

} // namespace scalide
