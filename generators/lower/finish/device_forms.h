#pragma once
#include "lower/kernel/lowered_kernel.h"

namespace scalide {

/// Rewrites a lowered kernel so that Halide 21 computes the same on a GPU as on a CPU. Call it before scheduling.
/// - OpenCL: an f64 constant that is not exact in f32 is made from its bits, because Halide would write it as f32. A non-strict a * b + c
///   becomes an fma, as LLVM does on CPUs with FMA. Functions that count bits get OpenCL's names.
/// - CUDA: strict products become separate instructions, which nothing contracts. Otherwise LLVM's NVPTX backend would contract strict
///   products and sums to an fma.
void use_device_forms(LoweredKernel &kernel, const Halide::Target &target);

} // namespace scalide
