#pragma once

namespace scalide::performance {

/// GFLOP/s of f32 FMA on vectors that stay in registers, one thread, now: the limit of any f32 product on this machine.
double measure_fma_peak();

} // namespace scalide::performance
