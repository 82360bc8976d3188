#pragma once
#include "lower/lower.h"

namespace scalide {

/// Inserts a check before each read and write of the compiled kernel, after all passes of Halide. Every lane that is not masked must be
/// inside its array: an argument, a result, or a temporary of the kernel, which may be on the stack.
void check_accesses(Halide::Pipeline &pipeline, const LoweredKernel &kernel);

/// Returns the first access outside its array since the last call of this function, or an empty string.
std::string take_wrong_access();

} // namespace scalide
