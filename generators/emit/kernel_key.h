#pragma once
#include "schedules/schedule.h"

namespace scalide {

/// Hashes of the sources that turn a kernel's text into code: those that kernels of all kinds pass through, and those of one kind
/// (lower/*/<kind>.cpp, lower/*/<kind>_*, schedules/*/<kind>.cpp). A changed schedule recompiles the kernels of its kind.
struct LoweringHashes {
    std::string common;
    std::map<std::string, std::string> by_kind;
};

/// Of the sources that this library was built from (generators/CMakeLists.txt).
const LoweringHashes &lowering_hashes();

/// What the code of a kernel depends on but for its tile numbers: a hash of its text, the target and the budget of its kind there, the
/// sources that lower its kind (of all kinds where it has no sources of its own) and Halide's version. `kernel` is canonical.
std::string lowering_key(const Program &kernel, const Halide::Target &target, const LoweringHashes &hashes);

/// What names the object of a kernel: the same with its tile numbers and what assembles it (assembly_key, kernel_target.h).
std::string kernel_key(const std::string &lowering_key, const Tiles &tiles, const std::string &assembly_key);

} // namespace scalide
