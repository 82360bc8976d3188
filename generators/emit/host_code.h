#pragma once
#include <Halide.h>

namespace scalide {

/// The host code of a device's kernel runs where the data is not (at bind, on any thread). Halide lets it ask whether a stage's values will
/// be used, which it would find out by reading arguments: with this all stages are.
void use_all_stages(Halide::Pipeline &pipeline);

/// Throws InternalError when host code of the module reads or writes elements of an array.
void check_host_code(const Halide::Module &module);

} // namespace scalide
