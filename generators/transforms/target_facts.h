#pragma once
#include <cstdint>
#include <string>

namespace scalide {

/// What passes may know of the machine that kernels are made for. `lower` and `schedules` know the rest.
struct TargetFacts {
    std::string name = "host"; ///< `host`, or Halide's target text
    int vector_lanes = 16;     ///< f32 lanes of a vector register
    bool bf16_dot = false;     ///< pairs of bf16 products accumulate into f32 in one instruction (vdpbf16ps)
    int threads = 2;           ///< that schedules are tuned for; any number works
};

} // namespace scalide
