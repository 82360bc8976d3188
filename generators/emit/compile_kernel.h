#pragma once
#include "ir/program.h"
#include "schedules/schedule.h"

namespace scalide {

/// A kernel made ready for compilation: lowered, tiles chosen, key and symbol known.
struct PreparedKernel {
    LoweredKernel lowered;
    Tiles tiles;
    std::string key;    ///< hash of the kernel's text, target, tile numbers, the sources that lower it and Halide's version
    std::string symbol; ///< C name of the function: equal kernels share it
};

/// Target of a kernel: `host` or Halide's target text, with the features that the runtime expects (no_runtime, no_asserts,
/// no_bounds_query, user_context). Throws UserError for a text that Halide does not know.
Halide::Target parse_target(const std::string &text);

PreparedKernel prepare_kernel(const Program &kernel, const Halide::Target &target);

/// Schedules and compiles to an object file. For a child process: LLVM may abort.
void compile_kernel(PreparedKernel &kernel, const Halide::Target &target, const std::string &object_file);

} // namespace scalide
