#pragma once
#include "emit/cache.h"
#include "emit/kernel_key.h"
#include "emit/kernel_target.h"

namespace scalide {

/// A kernel with all facts that a plan needs, and the names of its object.
struct PreparedKernel {
    Program program; ///< in canonical form
    Tiles tiles;
    std::vector<KernelOperand> call_order;
    std::string key;    ///< key of its object in the cache (kernel_key)
    std::string symbol; ///< C name of the function; equal kernels have the same one
};

/// True if the cache has the tiles and the call order of the kernel, which lowering determines. If it has, the kernel need not be lowered
/// again. Halide numbers its names throughout the life of a process. For reproducible objects, new kernels are therefore first prepared in
/// a child process.
bool is_prepared(const Program &kernel, const Halide::Target &target, const ObjectCache &cache);
PreparedKernel prepare_kernel(const Program &kernel, const KernelTarget &target, const ObjectCache &cache);

/// Returns the message of a Halide error. Many of its assertions have no message; then the text tells how to find the assertion.
std::string words_of(const Halide::Error &error);

/// Lowers, schedules and compiles a kernel to an object file. Returns its resources by CUDA architecture. Call it in a child process,
/// because LLVM may abort.
std::vector<CardUse> compile_kernel(const PreparedKernel &kernel, const KernelTarget &target, const std::string &object_file);

} // namespace scalide
