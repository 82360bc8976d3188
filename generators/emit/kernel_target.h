#pragma once
#include "emit/device_code.h"
#include "emit/plan.h"

namespace scalide {

/// What kernels are compiled for.
struct KernelTarget {
    Halide::Target halide;
    std::optional<CudaAssembly> cuda; ///< for CUDA
};

/// Target of a kernel: `host`, a device (`cuda`, `opencl`) or Halide's target text, with the features that the runtime expects (no_runtime,
/// no_asserts, no_bounds_query, user_context). Throws UserError for a text that Halide does not know.
Halide::Target parse_target(const std::string &text);

/// Where programs for the target run.
Device device_of(const Halide::Target &target);

/// The cards of target `text` that a user named, all when there are none; empty where it is not CUDA. Throws UserError for cards that are
/// not known, and for cards of another target.
std::vector<int> cards_of(const std::string &text, const std::vector<std::string> &cards);

/// The target with what CUDA needs besides. Throws UserError where that is not there, for cards that are not known, and for cards of
/// another target.
KernelTarget kernel_target(const std::string &text, const std::vector<std::string> &cards);

/// What an object depends on besides its lowering: the assembler's version and the cards. Empty but for CUDA.
std::string assembly_key(const KernelTarget &target);

} // namespace scalide
