#include "bind/arena.h"
#include "base/memory.h"
#include <gtest/gtest.h>
#include <random>
#include <vector>

namespace {

using scalide::ArenaItem;

bool overlap(const ArenaItem &a, const ArenaItem &b) {
    return a.first <= b.last && b.first <= a.last && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

uint64_t pack(std::vector<ArenaItem> &items) {
    std::vector<int32_t> work(2 * items.size());
    return scalide::pack_arena(items.data(), static_cast<int32_t>(items.size()), work.data());
}

/// The most bytes alive in one step, without padding: no packing can be smaller.
uint64_t lower_bound(const std::vector<ArenaItem> &items, int32_t steps) {
    uint64_t most = 0;
    for (int32_t step = 0; step < steps; ++step) {
        uint64_t sum = 0;
        for (const ArenaItem &item : items) sum += item.first <= step && step <= item.last ? item.bytes : 0;
        most = std::max(most, sum);
    }
    return most;
}

} // namespace

TEST(runtime, arena_reuses_dead_memory) {
    std::vector<ArenaItem> items = {{256, 0, 1, 0}, {128, 1, 2, 0}, {256, 2, 3, 0}, {64, 3, 4, 0}};
    EXPECT_EQ(pack(items), 384u);
    EXPECT_EQ(items[0].offset, items[2].offset);
}

TEST(runtime, arena_of_nothing_is_empty) {
    std::vector<ArenaItem> items;
    EXPECT_EQ(pack(items), 0u);
}

TEST(runtime, arena_refuses_sizes_beyond_63_bits) {
    std::vector<ArenaItem> items = {{uint64_t(1) << 62, 0, 0, 0}, {uint64_t(1) << 62, 1, 1, 0}};
    EXPECT_EQ(pack(items), UINT64_MAX);
}

TEST(runtime, arena_never_overlaps_live_buffers) {
    const auto seed = std::random_device()();
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    constexpr int32_t steps = 20;
    for (int round = 0; round < 200; ++round) {
        std::vector<ArenaItem> items(random() % 60);
        for (ArenaItem &item : items) {
            item.first = static_cast<int32_t>(random() % steps);
            item.last = std::min<int32_t>(steps - 1, item.first + static_cast<int32_t>(random() % 6));
            item.bytes = random() % 3 == 0 ? random() % 8 : random() % 4096;
        }
        const uint64_t total = pack(items);
        EXPECT_GE(total, lower_bound(items, steps));
        for (size_t i = 0; i < items.size(); ++i) {
            EXPECT_EQ(items[i].offset % scalide::memory_alignment, 0u);
            EXPECT_LE(items[i].offset + items[i].bytes, total);
            for (size_t j = 0; j < i; ++j) ASSERT_FALSE(overlap(items[i], items[j])) << "items " << i << " and " << j;
        }
    }
}
