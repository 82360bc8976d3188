#pragma once
#include "lower/values/values.h"

namespace scalide {

/// Returns the value of a movement or source node at `index` of its result. Throws InternalError for other nodes.
Halide::Expr lower_movement(const Node &node, const Index &index, Values &values);

/// Returns `value` if `inside` is true, otherwise `fill`. `value` reads an array whose extents along the moved axes are `extents`. An empty
/// array must not be read. So if an extent may be zero, a branch chooses, with a condition that is constant for the whole loop.
Halide::Expr select_inside(const Halide::Expr &inside, const Halide::Expr &value, const Halide::Expr &fill, const Index &extents);

/// Returns a constant as an Expr of this dtype. A low-precision float is a bit pattern.
Halide::Expr make_constant(Dtype dtype, double value);

/// The operand's index along one padded axis (always within the array), and whether there is an element.
struct PaddedAxis {
    Halide::Expr index, inside;
};

/// Maps position `index` of a padded axis to the operand. `low` positions come before the first element; elements are `step` positions
/// apart.
PaddedAxis unpad(const Halide::Expr &index, const Halide::Expr &low, const Halide::Expr &step, const Halide::Expr &extent);

} // namespace scalide
