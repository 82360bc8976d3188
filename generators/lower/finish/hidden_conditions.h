#pragma once
#include "lower/kernel/lowered_kernel.h"

namespace scalide {

/// Hides from Halide what the conditions of a lowered kernel's selects imply for loop variables. Call it before scheduling.
///
/// Invariant: the region of a stage that a consumer needs does not depend on conditions of the program. Halide narrows a stage's region by
/// the select around the read. For `select(row >= column, product(row, column), 0)`, a tile of the product has fewer rows than the loops
/// that compute it. Bounds that schedules promise without a check (`bound`, `bound_extent`) would then be false, and the loops would write
/// outside the stage's memory.
void hide_conditions(LoweredKernel &kernel);

} // namespace scalide
