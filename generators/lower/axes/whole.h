#pragma once
#include "lower/kinds.h"

namespace scalide {

// Reductions over all axes (amax, norms, the sum of a loss) beside the loop of a kernel that is not of kind full.

/// A reduction of an array that has fewer axes than the kernel's iteration space has, as reduce_columns_first leaves them.
bool is_whole_reduction(const Program &program, const Node &node);

/// Each reduction over all axes of an array with two or more becomes one over the last axis and one over the others.
Program reduce_columns_first(const Program &program);

/// The values that whole reductions read, stored in a Func each over all their axes. To be computed in the kernel's loop.
std::vector<Halide::Func> store_reduced(Lowering &lowering, const std::vector<Halide::Var> &axes);

/// Reduces what was stored, and binds the results.
TotalStages reduce_stored(Lowering &lowering, const std::vector<Halide::Func> &stored);

} // namespace scalide
