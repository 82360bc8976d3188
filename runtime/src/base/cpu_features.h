#pragma once
#include <cstddef>

namespace scalide {

/// Returns the first feature of a Halide target string ("x86-64-linux-avx2-fma") that this machine lacks, as a pointer into the string and
/// a length. Returns nullptr if the machine has all features. A name that the table does not contain counts as lacking.
const char *missing_cpu_feature(const char *target, size_t *length);

/// True if a feature that missing_cpu_feature() returned is AMX tiles that the CPU has: the system refuses them.
bool is_refused(const char *feature, size_t length);

/// Asks the system for permission to use AMX tiles. Returns 0 if it permits them, and an errno otherwise. Only the first call of a process
/// asks: permission raises the least size of the signal stacks of all threads, so a process without tiles must not have it.
int refused_tiles();

} // namespace scalide
