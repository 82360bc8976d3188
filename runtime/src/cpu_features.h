#pragma once
#include <cstddef>

namespace scalide {

/// The first feature of a Halide target string ("x86-64-linux-avx2-fma") that this machine lacks, as a pointer into the string and its
/// length; nullptr when it has all. A name that is not in our table counts as lacking.
const char *missing_cpu_feature(const char *target, size_t *length);

} // namespace scalide
