#pragma once
#include "lower/values.h"

namespace scalide {

// The value of a node at `index` of its result: movement whose places depend on data.

Halide::Expr lower_gather(const Node &node, const Index &index, Values &values);
Halide::Expr lower_dynamic_slice(const Node &node, const Index &index, Values &values);
Halide::Expr lower_dynamic_update_slice(const Node &node, const Index &index, Values &values);

} // namespace scalide
