#include "transforms/differentiate/transpose_rules.h"
#include "ir/reduction_axes.h"
#include "transforms/analysis/operators.h"
#include "transforms/differentiate/transpose_windows.h"
#include <algorithm>
#include <numeric>

namespace scalide {

namespace {

/// The arguments of a transposition.
struct Place {
    Builder &builder;
    const Node &node;
    int operand;
    ValueId ct;

    const Type &type() const { return builder.type(node.operands[operand]); }
    const Type &ct_type() const { return builder.type(ct); }
};

ValueId transpose(Builder &builder, ValueId value, const std::vector<int64_t> &order) {
    return std::ranges::is_sorted(order) ? value : builder.add_one("transpose", {value}, transpose_attributes(order));
}

ValueId reshape(Builder &builder, ValueId value, const Extents &shape) {
    return builder.type(value).shape == shape ? value : builder.add_one("reshape", {value}, reshape_attributes(shape));
}

/// The axes of one operand of a dot_general.
struct Side {
    std::vector<int64_t> batch, free, contract;
};

Side side_of(int64_t rank, const std::vector<int64_t> &batch, const std::vector<int64_t> &contract) {
    return {batch, other_axes(rank, batch, contract), contract};
}

/// Returns the axes of the wanted operand in the order in which the transposed dot_general emits them. The operand's own side comes first
/// (batch, free, contract) or last (batch, contract, free). Contracting axes have the order of the other operand's remaining axes.
std::vector<int64_t> made_axes(const Side &wanted, const Side &other, bool wanted_first) {
    std::vector<size_t> order(other.contract.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::sort(order, {}, [&](size_t i) { return other.contract[i]; });
    std::vector<int64_t> made = wanted.batch;
    if (wanted_first) made.insert(made.end(), wanted.free.begin(), wanted.free.end());
    for (const size_t i : order) made.push_back(wanted.contract[i]);
    if (!wanted_first) made.insert(made.end(), wanted.free.begin(), wanted.free.end());
    return made;
}

/// out[b, f, g] = sum_k lhs[b, f, k] rhs[b, g, k]. The cotangent of lhs is ct times rhs, summed over g. The cotangent of rhs is ct times
/// lhs, summed over f. The factors are put in the order that needs no transposition afterwards, if there is one.
ValueId transpose_dot(const Place &at) {
    const DotAxes axes = dot_axes(at.node);
    const Type &lhs = at.builder.type(at.node.operands[0]), &rhs = at.builder.type(at.node.operands[1]);
    const Side sides[] = {side_of(lhs.rank(), axes.lhs_batch, axes.lhs_contract), side_of(rhs.rank(), axes.rhs_batch, axes.rhs_contract)};
    const Side &wanted = sides[at.operand], &other = sides[1 - at.operand];
    const ValueId factor = at.node.operands[1 - at.operand];

    const std::vector<int64_t> ct_batch = count_up(static_cast<int64_t>(wanted.batch.size()));
    std::vector<int64_t> ct_contract = count_up(static_cast<int64_t>(other.free.size()));
    const size_t skipped = ct_batch.size() + (at.operand == 0 ? wanted.free.size() : 0);
    for (int64_t &axis : ct_contract) axis += static_cast<int64_t>(skipped);

    const bool ct_first =
        std::ranges::is_sorted(made_axes(wanted, other, true)) || !std::ranges::is_sorted(made_axes(wanted, other, false));
    const Dtype dtype = at.type().dtype;
    const ValueId product =
        ct_first
            ? at.builder.add_one("dot_general", {at.ct, factor}, dot_attributes({ct_contract, other.free, ct_batch, other.batch}, dtype))
            : at.builder.add_one("dot_general", {factor, at.ct}, dot_attributes({other.free, ct_contract, other.batch, ct_batch}, dtype));
    return transpose(at.builder, product, inverse(made_axes(wanted, other, ct_first)));
}

ValueId transpose_reduce_sum(const Place &at) {
    const std::vector<int64_t> kept = other_axes(at.type().rank(), reduced_axes(at.node));
    return at.builder.add_one("broadcast_in_dim", {at.ct}, broadcast_attributes(at.type().shape, kept));
}

/// Sums over the axes that the broadcast added, and over axes of extent 1 that it enlarged.
ValueId transpose_broadcast(const Place &at) {
    const std::vector<int64_t> kept = broadcast_axes(at.node);
    std::vector<int64_t> summed = other_axes(at.ct_type().rank(), kept);
    for (size_t i = 0; i < kept.size(); i++) {
        if (at.type().shape[i] != at.ct_type().shape[kept[i]]) summed.push_back(kept[i]);
    }
    std::ranges::sort(summed);
    const Extents shape = at.type().shape;
    if (summed.empty()) return at.ct;
    return reshape(at.builder, at.builder.add_one("reduce_sum", {at.ct}, reduce_attributes(summed)), shape);
}

ValueId transpose_reshape(const Place &at) { return reshape(at.builder, at.ct, at.type().shape); }

ValueId transpose_transpose(const Place &at) { return transpose(at.builder, at.ct, inverse(permutation(at.node))); }

ValueId transpose_rev(const Place &at) { return at.builder.add_one("rev", {at.ct}, at.node.attributes); }

ValueId zero(const Place &at) { return at.builder.constant(0, at.ct_type().dtype); }

/// Result element i is operand element start + stride * i, so zeros are added before, after and between.
ValueId transpose_slice(const Place &at) {
    const SliceBounds bounds = slice_bounds(at.node);
    Extents high;
    std::vector<int64_t> interior;
    for (int axis = 0; axis < at.type().rank(); axis++) {
        const int64_t stride = bounds.strides[axis];
        const Extent covered = (at.ct_type().shape[axis] - 1) * stride + 1;
        high.push_back(at.type().shape[axis] - bounds.start[axis] - covered);
        interior.push_back(stride - 1);
    }
    return at.builder.add_one("pad", {at.ct, zero(at)}, pad_attributes({bounds.start, high, interior}));
}

Extents negated(const Extents &extents) {
    Extents result;
    for (const Extent &extent : extents) result.push_back(Extent(0) - extent);
    return result;
}

/// The cotangent of the operand. It removes the padding (negative padding adds zeros), then takes every (interior + 1)-th element.
ValueId transpose_pad_operand(const Place &at) {
    const Padding pad = padding(at.node);
    const size_t rank = pad.low.size();
    const Padding undone{negated(pad.low), negated(pad.high), std::vector<int64_t>(rank, 0)};
    const ValueId inner = at.builder.add_one("pad", {at.ct, zero(at)}, pad_attributes(undone));
    if (std::ranges::count(pad.interior, 0) == static_cast<int64_t>(rank)) return inner;
    SliceBounds bounds{Extents(rank, Extent(0)), at.builder.type(inner).shape, {}};
    for (const int64_t amount : pad.interior) bounds.strides.push_back(amount + 1);
    return at.builder.add_one("slice", {inner}, slice_attributes(bounds));
}

/// The cotangent of the padding value: the sum of all cotangents minus the sum over the operand's elements.
ValueId transpose_pad_value(const Place &at) {
    const auto sum = [&](ValueId value) {
        return at.builder.add_one("reduce_sum", {value}, reduce_attributes(count_up(at.builder.type(value).rank())));
    };
    const ValueId all = sum(at.ct);
    return at.builder.add_one("sub", {all, sum(transpose_pad_operand({at.builder, at.node, 0, at.ct}))});
}

ValueId transpose_pad(const Place &at) { return at.operand == 0 ? transpose_pad_operand(at) : transpose_pad_value(at); }

ValueId transpose_concatenate(const Place &at) {
    const int64_t axis = at.node.attributes.at("dimension").integer.value();
    Extents start(at.type().rank(), Extent(0)), limit = at.ct_type().shape;
    for (int i = 0; i < at.operand; i++) start[axis] = start[axis] + at.builder.type(at.node.operands[i]).shape[axis];
    limit[axis] = start[axis] + at.type().shape[axis];
    return at.builder.add_one("slice", {at.ct}, slice_attributes({start, limit, std::vector<int64_t>(start.size(), 1)}));
}

ValueId transpose_convert(const Place &at) { return at.builder.convert(at.ct, at.type().dtype); }

struct TransposeRow {
    std::string_view op;
    ValueId (*transpose)(const Place &);
};

constexpr TransposeRow transpose_rows[] = {
    {"dot_general", transpose_dot},
    {"reduce_sum", transpose_reduce_sum},
    {"broadcast_in_dim", transpose_broadcast},
    {"reshape", transpose_reshape},
    {"transpose", transpose_transpose},
    {"rev", transpose_rev},
    {"slice", transpose_slice},
    {"pad", transpose_pad},
    {"concatenate", transpose_concatenate},
    {"convert_element_type", transpose_convert},
    {"reduce_window_sum", [](const Place &at) { return transpose_window_sum(at.builder, at.node, at.ct); }},
    {"conv_general_dilated", [](const Place &at) { return transpose_convolution(at.builder, at.node, at.operand, at.ct); }},
};

} // namespace

ValueId transpose_operator(Builder &builder, const Node &node, int operand, ValueId ct) {
    const auto *row = std::ranges::find(transpose_rows, node.op, &TransposeRow::op);
    internal_check(row != std::end(transpose_rows), "the operator " + node.op + " has no transposition");
    return row->transpose({builder, node, operand, ct});
}

} // namespace scalide
