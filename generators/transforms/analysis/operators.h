#pragma once
#include "ir/program.h"

namespace scalide {

/// Attributes of the operators that passes emit and read, with the names of their rules.

struct SliceBounds {
    Extents start, limit;
    std::vector<int64_t> strides;
};

/// Elements added before, after and between the elements of each axis. `low` and `high` may be negative.
struct Padding {
    Extents low, high;
    std::vector<int64_t> interior;
};

/// The axes of a dot_general, as pairs of lhs and rhs axes.
struct DotAxes {
    std::vector<int64_t> lhs_contract, rhs_contract, lhs_batch, rhs_batch;
};

Attributes constant_attributes(double value, Dtype dtype);
/// `axes[i]`: the result axis that operand axis i becomes, in ascending order.
Attributes broadcast_attributes(const Extents &shape, const std::vector<int64_t> &axes);
Attributes reshape_attributes(const Extents &shape);
Attributes transpose_attributes(const std::vector<int64_t> &permutation);
Attributes convert_attributes(Dtype dtype);
Attributes reduce_attributes(const std::vector<int64_t> &axes);
Attributes slice_attributes(const SliceBounds &bounds);
Attributes pad_attributes(const Padding &padding);
Attributes dot_attributes(const DotAxes &axes, Dtype preferred);

std::vector<int64_t> broadcast_axes(const Node &node);
std::vector<int64_t> permutation(const Node &node);
std::vector<int64_t> reversed_axes(const Node &node);
SliceBounds slice_bounds(const Node &node);
Padding padding(const Node &node);
DotAxes dot_axes(const Node &dot);

/// True for movement whose result elements are elements of the first operand, zero, infinite or NaN.
bool only_moves(const Node &node);
/// True for movement of one operand: each result element is one of its elements, selected by attributes.
bool moves_one_array(const Node &node);

/// 0, 1 .. count - 1.
std::vector<int64_t> count_up(int64_t count);
/// Returns the axes of an array of that rank that are in neither list.
std::vector<int64_t> other_axes(int64_t rank, const std::vector<int64_t> &axes, const std::vector<int64_t> &more = {});
/// Returns the inverse permutation of `order`.
std::vector<int64_t> inverse(const std::vector<int64_t> &order);

} // namespace scalide
