#pragma once
#include "emit/compile_kernel.h"
#include "emit/library.h"

namespace scalide {

/// The kernels of a fused program, by name of the sub-program.
using PreparedKernels = std::map<std::string, PreparedKernel>;

/// A fused program with its prepared kernels.
struct PreparedProgram {
    Program fused;
    const KernelTarget *target;
    PreparedKernels kernels;
    std::map<std::string, std::string> symbols() const; ///< C name of each kernel
};

/// A fused program, and the target for which its kernels are compiled.
struct TargetedProgram {
    Program fused;
    const KernelTarget *target;
};

/// Throws InternalError with the kernel's text if a kernel cannot be lowered.
std::vector<PreparedProgram> prepare_kernels(std::vector<TargetedProgram> programs, const BuildOptions &options, const ObjectCache &cache);

struct KernelObjects {
    std::map<std::string, std::filesystem::path> files; ///< by symbol
    std::map<std::string, std::vector<CardUse>> uses;   ///< by symbol, for CUDA only
    size_t compiled = 0;                                ///< number of kernels that were not in the cache
};

/// Returns the object file of each kernel. Equal kernels of several programs have one object. Kernels that are not in the cache are
/// compiled, each in a child process. If this fails, throws InternalError with the compiler's output and the kernel's text.
KernelObjects build_objects(const std::vector<PreparedProgram> &programs, const BuildOptions &options, const ObjectCache &cache);

} // namespace scalide
