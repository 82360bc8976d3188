#include "non_finite.h"
#include <cstring>

namespace scalide {

namespace {

/// A word is an infinity or a NaN when its bits under `mask` are `pattern`.
struct NonFiniteRow {
    uint64_t mask, pattern;
};
constexpr NonFiniteRow never = {0, 1};

// In the order of scalide_dtype.
constexpr NonFiniteRow rows[] = {
    {0x7F800000, 0x7F800000},
    {0x7C00, 0x7C00},
    {0x7F80, 0x7F80},
    {0x7F, 0x7F}, // e4m3fn: NaN only, as in the formats below but e5m2
    {0x7C, 0x7C},
    {0xFF, 0x80},
    {0xFF, 0x80},
    {0xFF, 0xFF},
    never,
    never,
    {0x7FF0000000000000, 0x7FF0000000000000},
    never,
    never,
    never,
    never,
    never,
};
static_assert(sizeof(rows) / sizeof(rows[0]) == SCALIDE_DTYPE_COUNT, "one row per dtype");

template<typename Word>
bool any(const void *data, int64_t count, NonFiniteRow row) {
    const auto mask = static_cast<Word>(row.mask), pattern = static_cast<Word>(row.pattern);
    const char *at = static_cast<const char *>(data);
    bool found = false;
    for (int64_t i = 0; i < count; ++i) {
        Word word;
        std::memcpy(&word, at + i * static_cast<int64_t>(sizeof(Word)), sizeof(Word));
        found |= (word & mask) == pattern;
    }
    return found;
}

} // namespace

bool has_non_finite(const scalide_array &array) {
    int64_t count = 1;
    for (int32_t axis = 0; axis < array.rank; ++axis) count *= array.extent[axis];
    const NonFiniteRow row = rows[array.dtype];
    switch (scalide_dtype_size(array.dtype)) {
    case 1: return any<uint8_t>(array.data, count, row);
    case 2: return any<uint16_t>(array.data, count, row);
    case 4: return any<uint32_t>(array.data, count, row);
    default: return any<uint64_t>(array.data, count, row);
    }
}

} // namespace scalide
