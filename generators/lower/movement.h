#pragma once
#include "lower/values.h"

namespace scalide {

/// The value of a movement or source node at `index` of its result. Throws InternalError on any other node.
Halide::Expr lower_movement(const Node &node, const Index &index, Values &values);

/// An f64 constant as an Expr of this dtype (narrow floats: the code).
Halide::Expr make_constant(Dtype dtype, double value);

} // namespace scalide
