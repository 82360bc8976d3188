#pragma once
#include "lower/kernel.h"

namespace scalide {

/// Halide 21 writes an f64 constant into OpenCL source as one of f32: makes each that is no f32 number from its bits. To be called on a
/// lowered kernel, before it is scheduled.
void spell_constants_for_opencl(LoweredKernel &kernel);

} // namespace scalide
