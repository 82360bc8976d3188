#pragma once
#include "guarded/guarded_run.h"

namespace scalide {

/// Runs the kernel as its own program on a CUDA GPU or the emulated driver. Skips kernels that cannot be a program: with f64 arrays, or
/// with a symbol that no argument's extent determines. An extent such as `b` or `4*b` determines `b`.
RunKernel card_kernel(const Program &kernel);

} // namespace scalide
