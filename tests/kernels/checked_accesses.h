#pragma once
#include "lower/kernel.h"

namespace scalide {

/// Puts a check in front of each read and write of the compiled kernel, as it is behind all of Halide's passes: every lane that is not
/// masked must lie in its array, be it an argument, a result or a stage of the kernel's own, which may lie on the stack.
void check_accesses(Halide::Pipeline &pipeline, const LoweredKernel &kernel);

/// The first access since the last call of this function that lay outside of its array; empty where none did.
std::string take_wrong_access();

} // namespace scalide
