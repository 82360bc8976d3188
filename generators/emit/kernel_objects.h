#pragma once
#include "emit/compile_kernel.h"
#include "emit/library.h"

namespace scalide {

/// The kernels of a fused program, by sub-program.
using PreparedKernels = std::map<std::string, PreparedKernel>;

/// A fused program whose kernels are known.
struct PreparedProgram {
    Program fused;
    PreparedKernels kernels;
    std::map<std::string, std::string> symbols() const; ///< C name of each kernel
};

/// Throws InternalError with the kernel's text when one cannot be lowered.
std::vector<PreparedProgram> prepare_kernels(std::vector<Program> fused, const KernelTarget &target, const BuildOptions &options,
                                             const ObjectCache &cache);

struct KernelObjects {
    std::map<std::string, std::filesystem::path> files; ///< by symbol
    std::map<std::string, std::vector<CardUse>> uses;   ///< by symbol, for CUDA
    size_t compiled = 0;                                ///< those that were not in the cache
};

/// The object file of each kernel, equal ones of several programs once; those not in the cache are compiled, each in a child process.
/// Throws InternalError with the compiler's words and the kernel's text when one does not compile.
KernelObjects build_objects(const std::vector<PreparedProgram> &programs, const KernelTarget &target, const BuildOptions &options,
                            const ObjectCache &cache);

} // namespace scalide
