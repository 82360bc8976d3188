#include "bind/arena.h"
#include "base/memory.h"
#include <algorithm>

namespace scalide {

namespace {

bool live_together(const ArenaItem &a, const ArenaItem &b) { return a.first <= b.last && b.first <= a.last; }

// `placed` is sorted by offset.
uint64_t lowest_gap(const ArenaItem *items, const int32_t *placed, int32_t count, const ArenaItem &item) {
    uint64_t offset = 0;
    for (int32_t i = 0; i < count; ++i) {
        const ArenaItem &other = items[placed[i]];
        if (!live_together(other, item)) continue;
        if (offset + item.bytes <= other.offset) break;
        offset = std::max(offset, round_up(other.offset + other.bytes, memory_alignment));
    }
    return offset;
}

} // namespace

uint64_t pack_arena(ArenaItem *items, int32_t count, int32_t *work) {
    int32_t *order = work, *placed = work + count;
    uint64_t sum = 0, total = 0;
    for (int32_t i = 0; i < count; ++i) {
        order[i] = i;
        if (__builtin_add_overflow(sum, round_up(items[i].bytes, memory_alignment), &sum) || sum > INT64_MAX) return UINT64_MAX;
    }
    std::sort(order, order + count,
              [items](int32_t a, int32_t b) { return items[a].bytes != items[b].bytes ? items[a].bytes > items[b].bytes : a < b; });
    for (int32_t i = 0; i < count; ++i) {
        ArenaItem &item = items[order[i]];
        item.offset = lowest_gap(items, placed, i, item);
        total = std::max(total, item.offset + item.bytes);
        int32_t *place = std::upper_bound(placed, placed + i, item.offset,
                                          [items](uint64_t offset, int32_t other) { return offset < items[other].offset; });
        std::copy_backward(place, placed + i, placed + i + 1);
        *place = order[i];
    }
    return total;
}

} // namespace scalide
