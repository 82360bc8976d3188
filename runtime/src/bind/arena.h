#pragma once
#include <cstdint>

namespace scalide {

/// A buffer that is used from step `first` to step `last`, both included.
struct ArenaItem {
    uint64_t bytes;
    int32_t first, last;
    uint64_t offset; ///< the result, a multiple of memory_alignment
};

/// Gives each item an offset such that items with overlapping lifetimes do not overlap in memory. It places the largest item first, each
/// into the lowest gap (greedy by size; within a few percent of the lower bound on training graphs). `work` holds 2 * count numbers.
/// Returns the size of the arena in bytes, or UINT64_MAX if it does not fit into 63 bits.
uint64_t pack_arena(ArenaItem *items, int32_t count, int32_t *work);

} // namespace scalide
