#pragma once
#include <Halide.h>

namespace scalide {

/// The host code of a device kernel runs at bind, on any thread, and cannot access data on the device. Two constructs that Halide generates
/// are therefore replaced:
/// - Conditions whether the values of a stage are used, which read arguments. Every stage counts as used.
/// - Device instructions in expressions that depend only on symbols and that Halide moves to the host. They become host instructions.
void adapt_host_code(Halide::Pipeline &pipeline);

/// Throws InternalError if host code of the module reads or writes elements of an array.
void check_host_code(const Halide::Module &module);

} // namespace scalide
