#pragma once
#include "lower/kernel.h"

namespace scalide {

/// Writes a lowered kernel so that Halide 21 computes on a GPU what it does on a CPU. To be called before it is scheduled.
/// - OpenCL: an f64 constant that is no f32 number is made from its bits (it would be written as one of f32); a * b + c of what is not
///   strict is an fma, as LLVM makes it on a CPU that has one; counts of bits have OpenCL's names.
/// - CUDA: strict products are instructions of their own, which nothing contracts (LLVM's NVPTX joins strict products and sums to an fma).
void use_device_forms(LoweredKernel &kernel, const Halide::Target &target);

} // namespace scalide
