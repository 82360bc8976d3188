#pragma once
#include <cstddef>

namespace scalide {

/// Returns the first feature of a Halide target string ("x86-64-linux-avx2-fma") that this machine lacks, as a pointer into the string and
/// a length. Returns nullptr if the machine has all features. A name that the table does not contain counts as lacking.
const char *missing_cpu_feature(const char *target, size_t *length);

} // namespace scalide
