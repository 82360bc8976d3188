#pragma once
#include "emit/library.h"

namespace scalide {

/// Prepares the kernels of all forms. Throws InternalError with the kernel's text if a kernel cannot be lowered.
void prepare_kernels(BuiltPrograms &programs, const BuildOptions &options, const ObjectCache &cache);

struct KernelObjects {
    std::map<std::string, std::filesystem::path> files; ///< by symbol
    std::map<std::string, std::vector<CardUse>> uses;   ///< by symbol, for CUDA only
    size_t compiled = 0;                                ///< number of kernels that were not in the cache
};

/// Returns the object file of each kernel. Equal kernels of several programs have one object. Kernels that are not in the cache are
/// compiled, each in a child process. If this fails, throws InternalError with the compiler's output and the kernel's text.
KernelObjects build_objects(const BuiltPrograms &programs, const BuildOptions &options, const ObjectCache &cache);

} // namespace scalide
