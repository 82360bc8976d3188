#include "run/non_finite.h"
#include <cstring>

namespace scalide {

namespace {

/// An element is an infinity or a NaN if its bits under `mask` are equal to `pattern`.
struct NonFiniteRow {
    uint64_t mask, pattern;
};

/// Returns the entry of a float format. A format with infinities uses its largest exponent for infinities and NaN. In a format without -0,
/// the bit pattern of -0 is the NaN. In all other formats, NaN has all bits set except the sign.
constexpr NonFiniteRow row_of(int exponent, int mantissa, bool has_sign, bool has_infinity, bool has_negative_zero) {
    const uint64_t magnitude = (uint64_t{1} << (exponent + mantissa)) - 1, sign = magnitude + 1;
    if (has_infinity) return {magnitude >> mantissa << mantissa, magnitude >> mantissa << mantissa};
    if (has_sign && !has_negative_zero) return {magnitude | sign, sign};
    return {magnitude, magnitude};
}

struct NonFiniteTable {
    NonFiniteRow rows[SCALIDE_DTYPE_COUNT];
};

constexpr NonFiniteTable make_table() {
    NonFiniteTable table = {};
    for (NonFiniteRow &row : table.rows) row = {0, 1}; // integers never match
    table.rows[SCALIDE_F64] = row_of(11, 52, true, true, true);
#define SCALIDE_ROW(id, name, exponent, mantissa, bias, sign, infinity, subnormals, negative_zero, ...)                                    \
    table.rows[SCALIDE_##id] = row_of(exponent, mantissa, sign, infinity, negative_zero);
    SCALIDE_FORMATS(SCALIDE_ROW)
#undef SCALIDE_ROW
    return table;
}

constexpr NonFiniteTable table = make_table();

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
    const NonFiniteRow row = table.rows[array.dtype];
    switch (scalide_dtype_size(array.dtype)) {
    case 1: return any<uint8_t>(array.data, count, row);
    case 2: return any<uint16_t>(array.data, count, row);
    case 4: return any<uint32_t>(array.data, count, row);
    default: return any<uint64_t>(array.data, count, row);
    }
}

} // namespace scalide
