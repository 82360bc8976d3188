#pragma once
#include "ir/program.h"
#include <Halide.h>

namespace scalide {

/// The largest access of a CUDA thread to memory.
constexpr int access_bytes = 16;

/// Returns the number of adjacent elements of each of these results that a CUDA thread can write by one access.
int elements_of_access(const Program &program, const std::vector<int> &results);

/// Maps an index outside of a line of `extent` elements to its first or last ones, in whole groups of `group` elements, so that a thread
/// reads a vector. `group` must divide the extent.
Halide::Expr inside_line(const Halide::Expr &index, int64_t extent, int group);

} // namespace scalide
