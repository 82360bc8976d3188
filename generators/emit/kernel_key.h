#pragma once
#include "schedules/schedule.h"

namespace scalide {

/// Hashes of the sources that compile kernels: one hash of the sources for all kinds, and one hash for each kind (lower/*/<kind>.cpp,
/// lower/*/<kind>_*, schedules/*/<kind>.cpp). A changed schedule recompiles only the kernels of its kind.
struct LoweringHashes {
    std::string common;
    std::map<std::string, std::string> by_kind;
};

/// Returns the hashes of the sources that this library was built from (generators/CMakeLists.txt).
const LoweringHashes &lowering_hashes();

/// Returns a hash of everything that determines the code of a kernel, except its tile sizes. These are the kernel's text, the target, the
/// budgets of its kind, the sources that lower its kind, and Halide's version. A kind without sources of its own uses the sources of all
/// kinds. `kernel` must be canonical.
std::string lowering_key(const Program &kernel, const Halide::Target &target, const LoweringHashes &hashes);

/// Returns the key of the kernel's object: the lowering key with the tile sizes and the key of the assembler (assembly_key,
/// kernel_target.h).
std::string kernel_key(const std::string &lowering_key, const Tiles &tiles, const std::string &assembly_key);

} // namespace scalide
