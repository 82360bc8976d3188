#pragma once
#include "ir/library_product.h"

namespace scalide {

/// What passes may know of the machine that kernels are made for. `lower` and `schedules` know the rest.
struct TargetFacts {
    std::string name = "host"; ///< `host`, or Halide's target text
    std::vector<LibraryProduct> products = {};
    std::vector<int> cards = {}; ///< of CUDA that kernels are compiled for, by compute capability
    /// A kernel does once, before its loops, what they all need: it packs the operands of a product, and computes rank-0 values.
    bool prepares_kernels = true;
};

} // namespace scalide
