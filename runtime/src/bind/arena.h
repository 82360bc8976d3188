#pragma once
#include <cstdint>

namespace scalide {

/// A buffer that lives from step `first` to step `last`, both included.
struct ArenaItem {
    uint64_t bytes;
    int32_t first, last;
    uint64_t offset; ///< the result, a multiple of memory_alignment
};

/// Gives each item a place such that items that live at the same time do not overlap: largest first, each into the lowest gap (the
/// greedy-by-size strategy; within a few percent of the lower bound on training graphs). `work` holds 2 * count numbers. Returns the
/// bytes of the whole arena, or UINT64_MAX when they do not fit into 63 bits.
uint64_t pack_arena(ArenaItem *items, int32_t count, int32_t *work);

} // namespace scalide
