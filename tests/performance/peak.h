#pragma once

namespace scalide::performance {

/// Measures the GFLOP/s of f32 FMA on one thread, on vectors that stay in registers. It is the limit of any f32 matmul on this machine.
double measure_fma_peak();

} // namespace scalide::performance
