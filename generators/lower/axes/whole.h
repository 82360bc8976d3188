#pragma once
#include "lower/kinds.h"

namespace scalide {

// Reductions over all axes (amax, norms, the sum of a loss) within a kernel of another kind than full.

/// True if the reduced array has fewer axes than the kernel's iteration space. reduce_columns_first() produces such reductions.
bool is_whole_reduction(const Program &program, const Node &node);

/// Splits each reduction over all axes of an array with at least two axes: first over the last axis, then over the others.
Program reduce_columns_first(const Program &program);

/// Stores the operands of whole reductions, each in a Func over all its axes. The kernel's loop computes these Funcs.
std::vector<Halide::Func> store_reduced(Lowering &lowering, const std::vector<Halide::Var> &axes);

/// Reduces the stored values and binds the results.
TotalStages reduce_stored(Lowering &lowering, const std::vector<Halide::Func> &stored);

} // namespace scalide
