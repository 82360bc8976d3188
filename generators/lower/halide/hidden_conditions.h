#pragma once
#include "lower/kernel.h"

namespace scalide {

/// Hides from Halide what the conditions of a lowered kernel's selects say about loop variables. To be called before it is scheduled.
///
/// Invariant: the region of a stage that a consumer needs does not depend on conditions of the program. Halide narrows the region of a
/// stage by the select under which it is read: behind `select(row >= column, product(row, column), 0)` a tile of the product has fewer
/// rows than the loops that make it. What schedules promise without a check (`bound`, `bound_extent`) would then be false, and the loops
/// would leave the stage's memory.
void hide_conditions(LoweredKernel &kernel);

} // namespace scalide
