#pragma once
#include "lower/values/values.h"

namespace scalide {

// Lower movement whose indices are data. They return the value of a node at `index` of its result.

Halide::Expr lower_gather(const Node &node, const Index &index, Values &values);
Halide::Expr lower_dynamic_slice(const Node &node, const Index &index, Values &values);
Halide::Expr lower_dynamic_update_slice(const Node &node, const Index &index, Values &values);

} // namespace scalide
