#pragma once
#include "guarded/guarded_run.h"

namespace scalide {

/// As a program of its own, on a CUDA card or its stand-in. Does not run kernels that no program can be: with f64 arrays, or with a symbol
/// that no argument has alone (`b`, `4*b`).
RunKernel card_kernel(const Program &kernel);

} // namespace scalide
