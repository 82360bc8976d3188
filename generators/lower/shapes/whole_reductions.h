#pragma once
#include "ir/program.h"

namespace scalide {

/// True if the reduced array has fewer axes than the kernel's iteration space. reduce_columns_first() produces such reductions.
bool is_whole_reduction(const Program &program, const Node &node);

/// Splits each reduction over all axes of an array with at least two axes: first over the last axis, then over the others.
Program reduce_columns_first(const Program &program);

} // namespace scalide
