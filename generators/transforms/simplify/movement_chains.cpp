#include "transforms/simplify/movement_chains.h"
#include "expr/base_operators.h"
#include "ir/reduction_axes.h"
#include "transforms/analysis/operators.h"
#include <algorithm>

namespace scalide {

namespace {

using Merged = std::optional<ValueId>;

bool moves_nothing(const Candidate &at, const std::vector<int64_t> &axes) {
    return at.type == at.operand_type() && axes == count_up(at.type.rank());
}

Merged merge_broadcast(const Candidate &at) {
    const std::vector<int64_t> axes = broadcast_axes(at.node);
    if (moves_nothing(at, axes)) return at.operand();
    const Node *inner = at.facts.producer(at.operand(), "broadcast_in_dim");
    if (inner == nullptr) return {};
    std::vector<int64_t> composed;
    for (const int64_t axis : broadcast_axes(*inner)) composed.push_back(axes[axis]);
    return at.emit("broadcast_in_dim", {inner->operands[0]}, broadcast_attributes(at.type.shape, composed));
}

Merged merge_reshape(const Candidate &at) {
    if (at.type == at.operand_type()) return at.operand();
    const Node *inner = at.facts.producer(at.operand(), "reshape");
    if (inner == nullptr) return {};
    return at.emit("reshape", {inner->operands[0]}, reshape_attributes(at.type.shape));
}

/// transpose(broadcast(x)) is a broadcast if its axes still ascend.
Merged merge_transposed_broadcast(const Candidate &at, const std::vector<int64_t> &order) {
    const Node *inner = at.facts.producer(at.operand(), "broadcast_in_dim");
    if (inner == nullptr) return {};
    std::vector<int64_t> axes;
    for (const int64_t axis : broadcast_axes(*inner)) axes.push_back(std::ranges::find(order, axis) - order.begin());
    if (!std::ranges::is_sorted(axes)) return {};
    return at.emit("broadcast_in_dim", {inner->operands[0]}, broadcast_attributes(at.type.shape, axes));
}

Merged merge_transpose(const Candidate &at) {
    const std::vector<int64_t> order = permutation(at.node);
    if (moves_nothing(at, order)) return at.operand();
    const Node *inner = at.facts.producer(at.operand(), "transpose");
    if (inner == nullptr) return merge_transposed_broadcast(at, order);
    const std::vector<int64_t> first = permutation(*inner);
    std::vector<int64_t> composed;
    for (const int64_t axis : order) composed.push_back(first[axis]);
    return at.emit("transpose", {inner->operands[0]}, transpose_attributes(composed));
}

Merged merge_rev(const Candidate &at) {
    const Node *inner = at.facts.producer(at.operand(), "rev");
    if (reversed_axes(at.node).empty()) return at.operand();
    return inner != nullptr && reversed_axes(*inner) == reversed_axes(at.node) ? Merged(inner->operands[0]) : std::nullopt;
}

/// A slice within one operand of a concatenation is a slice of that operand. Unrolled loops produce this: their steps are concatenated, and
/// the gradient slices them again.
Merged slice_of_operand(const Candidate &at, const Node &joined) {
    const int64_t axis = joined.attributes.at("dimension").integer.value();
    SliceBounds bounds = slice_bounds(at.node);
    Extent &start = bounds.start[axis], &limit = bounds.limit[axis];
    for (const ValueId part : joined.operands) {
        const Extent &extent = at.facts.program().type(part).shape[axis];
        if (!extent.is_static() || !start.is_static() || !limit.is_static()) return {};
        if (limit.value() <= extent.value()) return at.emit("slice", {part}, slice_attributes(bounds));
        if (start.value() < extent.value()) return {};
        start = start - extent;
        limit = limit - extent;
    }
    return {};
}

/// Element i of the result is element start + stride * i of the operand. That is element start' + stride' * (start + stride * i) of the
/// inner operand.
Merged merge_slice(const Candidate &at) {
    if (at.type == at.operand_type()) return at.operand();
    if (const Node *joined = at.facts.producer(at.operand(), "concatenate")) return slice_of_operand(at, *joined);
    const Node *inner = at.facts.producer(at.operand(), "slice");
    if (inner == nullptr) return {};
    const SliceBounds outer = slice_bounds(at.node), first = slice_bounds(*inner);
    SliceBounds composed = outer;
    for (size_t i = 0; i < outer.start.size(); i++) {
        composed.start[i] = first.start[i] + outer.start[i] * first.strides[i];
        composed.limit[i] = first.start[i] + (outer.limit[i] - 1) * first.strides[i] + 1;
        composed.strides[i] = outer.strides[i] * first.strides[i];
    }
    return at.emit("slice", {inner->operands[0]}, slice_attributes(composed));
}

Merged merge_pad(const Candidate &at) {
    const Padding pad = padding(at.node);
    const auto is_zero = [](const auto &amount) { return amount == 0; };
    const bool nothing =
        std::ranges::all_of(pad.low, is_zero) && std::ranges::all_of(pad.high, is_zero) && std::ranges::all_of(pad.interior, is_zero);
    return nothing ? Merged(at.operand()) : std::nullopt;
}

Merged merge_concatenate(const Candidate &at) { return at.node.operands.size() == 1 ? Merged(at.operand()) : std::nullopt; }

Merged merge_reduction(const Candidate &at) { return reduced_axes(at.node).empty() ? Merged(at.operand()) : std::nullopt; }

/// A sum starts from +0, so the sum of a single -0 is +0.
Merged merge_sum(const Candidate &at) { return at.facts.never_negative_zero(at.operand()) ? merge_reduction(at) : std::nullopt; }

ValueId full_of_zeros(const Candidate &at) {
    const ValueId zero = at.emit("constant", {}, constant_attributes(0, at.type.dtype));
    return at.type.is_scalar() ? zero : at.emit("broadcast_in_dim", {zero}, broadcast_attributes(at.type.shape, {}));
}

bool is_one(const Candidate &at, const std::string &axis) {
    return at.operand_type().shape[at.node.attributes.at(axis).integer.value()] == Extent(1);
}

/// A scan of one element returns that element.
Merged merge_scan(const Candidate &at) { return is_one(at, "axis") ? Merged(at.operand()) : std::nullopt; }

/// Sums, and logarithms of sums, start from +0.
Merged merge_cumulative_sum(const Candidate &at) {
    if (!is_one(at, "axis") || !is_float(at.type.dtype) || at.facts.never_negative_zero(at.operand())) return merge_scan(at);
    return at.emit("add", {at.operand(), full_of_zeros(at)}, {});
}

/// One element has the index 0.
Merged merge_argsort(const Candidate &at) { return is_one(at, "dimension") ? Merged(full_of_zeros(at)) : std::nullopt; }

/// True if `to` represents every element of `from` exactly.
bool widens(Dtype from, Dtype to) {
    if (!is_float(from) || !is_float(to)) return false;
    return (to == Dtype::f32 && from != Dtype::f64) || to == Dtype::f64 || from == to;
}

/// Merges a widening with the conversion back, and two widenings.
Merged merge_convert(const Candidate &at) {
    if (at.type == at.operand_type()) return at.operand();
    const Node *inner = at.facts.producer(at.operand(), "convert_element_type");
    if (inner == nullptr) return {};
    const ValueId source = inner->operands[0];
    const Dtype from = at.facts.program().type(source).dtype;
    if (!widens(from, at.operand_type().dtype)) return {};
    if (from == at.type.dtype) return source;
    if (!widens(from, at.type.dtype)) return {};
    return at.emit("convert_element_type", {source}, convert_attributes(at.type.dtype));
}

struct MergeRow {
    std::string_view op;
    Merged (*merge)(const Candidate &);
};

constexpr MergeRow merge_rows[] = {
    {"broadcast_in_dim", merge_broadcast},
    {"reshape", merge_reshape},
    {"transpose", merge_transpose},
    {"rev", merge_rev},
    {"slice", merge_slice},
    {"pad", merge_pad},
    {"concatenate", merge_concatenate},
    {"reduce_sum", merge_sum},
    {"reduce_max", merge_reduction},
    {"reduce_min", merge_reduction},
    {"reduce_prod", merge_reduction},
    {"reduce_and", merge_reduction},
    {"reduce_or", merge_reduction},
    {"reduce_xor", merge_reduction},
    {"cumsum", merge_cumulative_sum},
    {"cumlogsumexp", merge_cumulative_sum},
    {"cumprod", merge_scan},
    {"cummax", merge_scan},
    {"cummin", merge_scan},
    {"argsort", merge_argsort},
    {"convert_element_type", merge_convert},
};

/// True for movement that reads each element at most once.
bool is_move(const Node &node) { return moves_one_array(node) && !base_operator(node.op).repeats; }

/// Movement of a broadcast scalar is a broadcast of the scalar.
Merged move_scalar(const Candidate &at) {
    const ValueId scalar = at.facts.scalar_source(at.operand());
    if (scalar < 0 || at.operand_type().is_scalar()) return {};
    return at.emit("broadcast_in_dim", {scalar}, broadcast_attributes(at.type.shape, {}));
}

/// Moves a widened value before it is widened. If the moved value is stored, for example as a matmul operand, it is stored in low
/// precision.
Merged move_narrow(const Candidate &at) {
    const Node *inner = at.facts.producer(at.operand(), "convert_element_type");
    if (inner == nullptr) return {};
    const ValueId source = inner->operands[0];
    if (!widens(at.facts.program().type(source).dtype, at.type.dtype)) return {};
    const ValueId moved = at.emit(at.node.op, {source}, at.node.attributes);
    return at.emit("convert_element_type", {moved}, convert_attributes(at.type.dtype));
}

} // namespace

std::optional<ValueId> merge_movement(const Candidate &candidate) {
    if (candidate.node.operands.empty()) return {};
    const auto *row = std::ranges::find(merge_rows, candidate.node.op, &MergeRow::op);
    if (row == std::end(merge_rows)) return {};
    Merged merged = row->merge(candidate);
    if (!merged && is_move(candidate.node)) merged = move_scalar(candidate);
    if (!merged && is_move(candidate.node)) merged = move_narrow(candidate);
    return merged;
}

} // namespace scalide
