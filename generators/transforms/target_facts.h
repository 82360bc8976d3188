#pragma once
#include "ir/library_product.h"

namespace scalide {

/// What passes may know of the machine that kernels are made for. `lower` and `schedules` know the rest.
struct TargetFacts {
    std::string name = "host"; ///< `host`, or Halide's target text
    std::vector<LibraryProduct> products = {};
    std::vector<int> cards = {}; ///< of CUDA that kernels are compiled for, by compute capability
};

} // namespace scalide
