#pragma once
#include "lower/values/kinds.h"

namespace scalide {

// Reductions over all axes (amax, norms, the sum of a loss) within a kernel of another kind than full.

/// Stores the operands of whole reductions, each in a Func over all its axes. The kernel's loop computes these Funcs.
std::vector<Halide::Func> store_reduced(Lowering &lowering, const std::vector<Halide::Var> &axes);

/// Reduces the stored values and binds the results.
TotalStages reduce_stored(Lowering &lowering, const std::vector<Halide::Func> &stored);

} // namespace scalide
