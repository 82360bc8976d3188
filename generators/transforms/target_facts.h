#pragma once
#include <string>

namespace scalide {

/// What passes may know of the machine that kernels are made for: its name so far. `lower` and `schedules` know the rest.
struct TargetFacts {
    std::string name = "host"; ///< `host`, or Halide's target text
};

} // namespace scalide
