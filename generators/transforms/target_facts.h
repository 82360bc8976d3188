#pragma once
#include "ir/library_product.h"

namespace scalide {

/// What sorting costs, in picoseconds. All 0: nothing is known, and nothing is chosen by it.
struct SortCosts {
    int longest_by_network = 0; ///< elements of a line that goes through a sorting network; longer ones are put in place digit by digit
    int network_step = 0;       ///< for an element of a line of n, times the steps of its network: log2(n) (log2(n) + 1)
    int digits_line = 0, digits_element = 0; ///< for a line, and for each element of it
    int maximum_element = 0;                 ///< of a line, to find maxima in it
};

/// What passes may know of the machine that kernels are made for. `lower` and `schedules` know the rest.
struct TargetFacts {
    std::string name = "host"; ///< `host`, or Halide's target text
    std::vector<LibraryProduct> products = {};
    std::vector<int> cards = {}; ///< of CUDA that kernels are compiled for, by compute capability
    /// A kernel does once, before its loops, what they all need: it packs the operands of a product, and computes rank-0 values.
    bool prepares_kernels = true;
    SortCosts sort = {};
};

} // namespace scalide
