#pragma once
#include "ir/library_product.h"

namespace scalide {

/// The cost of sorting, in picoseconds. All 0: the costs are unknown, and nothing is chosen by them.
struct SortCosts {
    int longest_by_network = 0;              ///< longest line that a sorting network sorts; a radix sort sorts longer lines
    int network_step = 0;                    ///< for each element of a line of n, times log2(n) (log2(n) + 1) network steps
    int digits_line = 0, digits_element = 0; ///< radix sort: for each line, and for each element
    int maximum_element = 0;                 ///< finding maxima in a line: for each element
};

/// What passes may know about the target. Only `lower` and `schedules` know more.
struct TargetFacts {
    std::string name = "host"; ///< `host`, or Halide's target text
    std::vector<LibraryProduct> products = {};
    std::vector<int> cards = {}; ///< CUDA compute capabilities for which kernels are compiled
    /// A kernel prepares shared values once, before its loops: it packs the operands of a matmul and computes rank-0 values. The reductions
    /// in the epilogue of a matmul run in the loops of its result.
    bool prepares_kernels = true;
    SortCosts sort = {};
    bool is_gpu = false;
};

} // namespace scalide
