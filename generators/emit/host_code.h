#pragma once
#include <Halide.h>

namespace scalide {

/// The host code of a device's kernel runs where the data is not (at bind, on any thread). What Halide puts there that cannot be there:
/// - It asks whether a stage's values will be used, by reading arguments: with this all stages are.
/// - Expressions of symbols alone are moved there with instructions of the device in them: they become the host's.
void adapt_host_code(Halide::Pipeline &pipeline);

/// Throws InternalError when host code of the module reads or writes elements of an array.
void check_host_code(const Halide::Module &module);

} // namespace scalide
