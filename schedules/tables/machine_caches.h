#pragma once
#include <Halide.h>
#include <map>
#include <string>

namespace scalide {

/// Returns the sizes in KiB of the data caches of a core of this machine, by level: {"l1", 32}, {"l2", 1024}. Empty if the system does not
/// tell them.
const std::map<std::string, int64_t> &machine_caches();

/// True for a CPU target with all features of this machine, such as `host`: its kernels run on this machine or on one with as many
/// features.
bool is_this_machine(const Halide::Target &target);

} // namespace scalide
