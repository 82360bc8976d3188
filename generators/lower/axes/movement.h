#pragma once
#include "lower/values.h"

namespace scalide {

/// The value of a movement or source node at `index` of its result. Throws InternalError on any other node.
Halide::Expr lower_movement(const Node &node, const Index &index, Values &values);

/// `value` where `inside`, else `fill`. `value` reads an array whose extents along the moved axes are `extents`: an empty array must not
/// even be touched, so that where an extent may be zero the choice is a branch, on a condition that is the same for the whole loop.
Halide::Expr select_inside(const Halide::Expr &inside, const Halide::Expr &value, const Halide::Expr &fill, const Index &extents);

/// An f64 constant as an Expr of this dtype (narrow floats: the code).
Halide::Expr make_constant(Dtype dtype, double value);

/// Index of the operand along one padded axis (within the array), and whether there is an element.
struct PaddedAxis {
    Halide::Expr index, inside;
};

/// Place `index` of an axis with `low` places before its first element and `step` places from one to the next.
PaddedAxis unpad(const Halide::Expr &index, const Halide::Expr &low, const Halide::Expr &step, const Halide::Expr &extent);

} // namespace scalide
