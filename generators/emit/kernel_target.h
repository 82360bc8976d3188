#pragma once
#include "emit/device_code.h"
#include "emit/plan.h"

namespace scalide {

/// The target for which kernels are compiled.
struct KernelTarget {
    Halide::Target halide;
    std::optional<CudaAssembly> cuda; ///< set for CUDA only
};

/// Parses the target of a kernel: `host`, a device (`cuda`, `opencl`), a level of x86-64 (`x86-64-v3`) or a target of Halide, which may
/// have the part `amx` (lower/halide/amx_feature.h). Adds the features that the runtime expects (no_runtime, no_asserts, no_bounds_query,
/// user_context). The environment variable SCALIDE_HOST_TARGET may name the CPU that `host` means. Throws UserError for a text that Halide
/// does not know.
Halide::Target parse_target(const std::string &text);

/// Returns the features of a CPU target as tables of tile numbers name them: "avx2", "amx".
std::vector<std::string> cpu_features(const std::string &text);

/// Splits a list of targets at its commas. A list of several is for CPUs: each has instructions that those before it lack. Throws UserError
/// for a device in such a list, and for a target that has no more instructions than one before it.
std::vector<std::string> split_targets(const std::string &text);

/// Returns the targets of a list in words. The machine of the build (`host`) is `x86-64-v4 (AVX-512 VNNI, BF16)`.
std::string described_targets(const std::string &text);

/// Returns the device on which programs for the target run.
Device device_of(const Halide::Target &target);

/// Returns the compute capabilities that a user named for target `text`, or all if there are none. Empty if the target is not CUDA. Throws
/// UserError for unknown compute capabilities, and for any with another target.
std::vector<int> cards_of(const std::string &text, const std::vector<std::string> &cards);

/// Returns the target with the tools that CUDA needs. Throws UserError if a tool is missing, for unknown compute capabilities, and for any
/// with another target.
KernelTarget kernel_target(const std::string &text, const std::vector<std::string> &cards);

/// Returns the inputs of an object other than its lowering: the assembler's version and the compute capabilities. Empty unless the target
/// is CUDA.
std::string assembly_key(const KernelTarget &target);

} // namespace scalide
