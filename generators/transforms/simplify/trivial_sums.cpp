#include "transforms/simplify/trivial_sums.h"
#include "rulebook/builder.h"
#include "transforms/analysis/operators.h"
#include "transforms/analysis/splice.h"
#include <algorithm>

namespace scalide {

namespace {

/// The axes of an operand. Its other axes become the axes of the result from `first_free` on.
struct PlacedAxes {
    const std::vector<int64_t> &batch, &contracted;
    int64_t first_free;
};

/// Broadcasts an operand to the shape of the result.
ValueId laid_out(Builder &builder, ValueId operand, const PlacedAxes &axes_of_operand, const Extents &result) {
    const auto &[batch, contracted, first_free] = axes_of_operand;
    const std::vector<int64_t> free = other_axes(builder.type(operand).rank(), batch, contracted);
    std::vector<int64_t> order = batch;
    order.insert(order.end(), free.begin(), free.end());
    Extents kept;
    for (const int64_t axis : order) kept.push_back(builder.type(operand).shape[axis]);
    order.insert(order.end(), contracted.begin(), contracted.end());
    if (!std::ranges::is_sorted(order)) operand = builder.add_one("transpose", {operand}, transpose_attributes(order));
    if (builder.type(operand).shape != kept) operand = builder.add_one("reshape", {operand}, reshape_attributes(kept));
    if (kept == result) return operand;
    std::vector<int64_t> axes = count_up(std::ssize(batch));
    for (int64_t i = 0; i < std::ssize(free); i++) axes.push_back(first_free + i);
    return builder.add_one("broadcast_in_dim", {operand}, broadcast_attributes(result, axes));
}

/// Returns the number of terms of each sum of a dot_general.
Extent terms_of(const Program &program, const Node &dot) {
    Extent terms(1);
    for (const int64_t axis : dot_axes(dot).lhs_contract) terms = terms * program.type(dot.operands[0]).shape[axis];
    return terms;
}

std::vector<ValueId> zeros(Builder &builder, const Node &dot) {
    const Type result = builder.type(dot.results[0]);
    const ValueId zero = builder.constant(0, result.dtype);
    if (result.is_scalar()) return {zero};
    return {builder.add_one("broadcast_in_dim", {zero}, broadcast_attributes(result.shape, {}))};
}

std::vector<ValueId> product(Builder &builder, const Node &dot) {
    const Type result = builder.type(dot.results[0]);
    const DotAxes axes = dot_axes(dot);
    const Dtype lhs_dtype = builder.type(dot.operands[0]).dtype, rhs_dtype = builder.type(dot.operands[1]).dtype;
    // A dot_general multiplies integers in the dtype of the result. It rounds a product of floats once, to the dtype of the result.
    const bool same = lhs_dtype == result.dtype && rhs_dtype == result.dtype;
    const Dtype dtype = same || !is_float(result.dtype) ? result.dtype : Dtype::f32;
    const int64_t batches = std::ssize(axes.lhs_batch);
    const int64_t of_lhs = builder.type(dot.operands[0]).rank() - batches - std::ssize(axes.lhs_contract);
    const ValueId lhs =
        laid_out(builder, builder.convert(dot.operands[0], dtype), {axes.lhs_batch, axes.lhs_contract, batches}, result.shape);
    const ValueId rhs =
        laid_out(builder, builder.convert(dot.operands[1], dtype), {axes.rhs_batch, axes.rhs_contract, batches + of_lhs}, result.shape);
    return {builder.convert(builder.add_one("mul", {lhs, rhs}), result.dtype)};
}

Remake without_sum(const Program &program, const Node &node) {
    if (node.op != "dot_general") return {};
    const Extent terms = terms_of(program, node);
    if (terms == Extent(0)) return zeros;
    return terms == Extent(1) ? Remake(product) : Remake();
}

} // namespace

Program remove_trivial_sums(const Program &program, const Rulebook &rulebook) {
    if (std::ranges::none_of(program.nodes, [&](const Node &node) { return static_cast<bool>(without_sum(program, node)); }))
        return program;
    Program made = program;
    replace_nodes(made, rulebook, without_sum);
    return made;
}

} // namespace scalide
