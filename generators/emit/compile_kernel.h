#pragma once
#include "emit/cache.h"
#include "emit/kernel_key.h"
#include "emit/kernel_target.h"

namespace scalide {

/// All that a plan needs to know about a kernel, and what its object is called.
struct PreparedKernel {
    Program program; ///< canonical
    Tiles tiles;
    std::vector<KernelOperand> call_order;
    std::string key;    ///< of its object (kernel_key)
    std::string symbol; ///< C name of the function: equal kernels share it
};

/// Tiles and call order come from lowering; the cache keeps them, so that a kernel is lowered the first time only. Halide numbers its names
/// through the life of a process: where objects are to be the same in every build, new kernels are prepared in a child process first.
bool is_prepared(const Program &kernel, const Halide::Target &target, const ObjectCache &cache);
PreparedKernel prepare_kernel(const Program &kernel, const KernelTarget &target, const ObjectCache &cache);

/// What Halide says of an error, or, as many of its assertions say nothing, how to learn which one failed.
std::string words_of(const Halide::Error &error);

/// Lowers, schedules and compiles to an object file. Returns what it uses on each card of CUDA. For a child process: LLVM may abort.
std::vector<CardUse> compile_kernel(const PreparedKernel &kernel, const KernelTarget &target, const std::string &object_file);

} // namespace scalide
