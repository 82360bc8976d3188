#include "tile_unit.h"
#include <algorithm>
#include <cstring>
#include <xmmintrin.h>

namespace tiles {

namespace {

// Masks all exceptions, rounds to nearest even, and reads and writes subnormals as zero: TDPBF16PS computes so whatever MXCSR contains.
constexpr unsigned flushing = 0x9fc0;

float float_of_bf16(uint16_t bits) {
    const uint32_t wide = uint32_t(bits) << 16;
    float value;
    std::memcpy(&value, &wide, sizeof value);
    return value;
}

uint16_t half_at(const unsigned char *row, int index) {
    uint16_t bits;
    std::memcpy(&bits, row + index * 2, sizeof bits);
    return bits;
}

int byte_at(const unsigned char *row, int index, bool is_signed) { return is_signed ? static_cast<signed char>(row[index]) : row[index]; }

/// Adds the products of a row of pairs. The first elements of all pairs have one sum, the second elements another.
void add_bf16(float *sums, int columns, const unsigned char *left, int pairs, const unsigned char (*right)[max_row_bytes]) {
    float partial[2 * max_rows] = {};
    for (int k = 0; k < pairs; k++) {
        for (int n = 0; n < 2 * columns; n++) {
            const float factor = float_of_bf16(half_at(left, 2 * k + n % 2));
            partial[n] = __builtin_fmaf(factor, float_of_bf16(half_at(right[k], n)), partial[n]);
        }
    }
    for (int n = 0; n < columns; n++) sums[n] += partial[2 * n] + partial[2 * n + 1];
}

/// Adds the products of a row of groups of four bytes. Sums wrap around.
void add_bytes(uint32_t *sums, int columns, const unsigned char *left, int groups, const unsigned char (*right)[max_row_bytes],
               Operands operands) {
    for (int k = 0; k < groups; k++) {
        for (int n = 0; n < columns; n++) {
            int sum = 0;
            for (int i = 0; i < 4; i++)
                sum += byte_at(left, 4 * k + i, operands.left_signed) * byte_at(right[k], 4 * n + i, operands.right_signed);
            sums[n] += static_cast<uint32_t>(sum);
        }
    }
}

bool all_zero(const void *bytes, size_t count) {
    const auto *first = static_cast<const unsigned char *>(bytes);
    return std::all_of(first, first + count, [](unsigned char byte) { return byte == 0; });
}

} // namespace

const char *TileUnit::configure(const Configuration &wanted) {
    if (wanted.palette == 0) {
        release();
        return nullptr;
    }
    if (wanted.palette != 1) return "a palette other than 0 and 1";
    if (!all_zero(wanted.reserved, sizeof wanted.reserved) || !all_zero(wanted.row_bytes + tile_count, 16) ||
        !all_zero(wanted.rows + tile_count, 8))
        return "reserved bytes that are not zero";
    for (int tile = 0; tile < tile_count; tile++) {
        if (wanted.rows[tile] > max_rows) return "more than 16 rows";
        if (wanted.row_bytes[tile] > max_row_bytes) return "more than 64 bytes in a row";
        if ((wanted.rows[tile] == 0) != (wanted.row_bytes[tile] == 0)) return "rows or bytes of a row only";
    }
    shapes = wanted;
    std::memset(data, 0, sizeof data);
    return nullptr;
}

void TileUnit::release() {
    shapes = {};
    std::memset(data, 0, sizeof data);
}

Configuration TileUnit::configuration() const { return shapes; }

const char *TileUnit::check(int tile) const {
    if (shapes.palette == 0) return "a tile is used before LDTILECFG";
    if (tile >= tile_count) return "a tile register above 7";
    return rows(tile) == 0 ? "a tile is used to which LDTILECFG gave no rows" : nullptr;
}

void TileUnit::clear_rows(int tile, int from) {
    for (int row = from; row < max_rows; row++) std::memset(data[tile][row], 0, max_row_bytes);
}

const char *TileUnit::zero(int tile) {
    if (const char *reason = check(tile)) return reason;
    clear_rows(tile, 0);
    shapes.start_row = 0;
    return nullptr;
}

const char *TileUnit::load(int tile, const char *base, int64_t stride) {
    if (const char *reason = check(tile)) return reason;
    // An access that faults leaves the row at which the instruction continues.
    for (; shapes.start_row < rows(tile); shapes.start_row++) {
        unsigned char *row = data[tile][shapes.start_row];
        std::memcpy(row, base + shapes.start_row * stride, row_bytes(tile));
        std::memset(row + row_bytes(tile), 0, max_row_bytes - row_bytes(tile));
    }
    clear_rows(tile, rows(tile));
    shapes.start_row = 0;
    return nullptr;
}

const char *TileUnit::store(int tile, char *base, int64_t stride) {
    if (const char *reason = check(tile)) return reason;
    for (; shapes.start_row < rows(tile); shapes.start_row++)
        std::memcpy(base + shapes.start_row * stride, data[tile][shapes.start_row], row_bytes(tile));
    shapes.start_row = 0;
    return nullptr;
}

const char *TileUnit::multiply(int sums, int left, int right, Operands operands) {
    for (const int tile : {sums, left, right})
        if (const char *reason = check(tile)) return reason;
    if (sums == left || sums == right || left == right) return "a dot product with the same tile twice";
    if (shapes.start_row != 0) return "a dot product after a load that did not end";
    for (const int tile : {sums, left, right})
        if (row_bytes(tile) % 4 != 0) return "a dot product with rows that are not whole groups of 4 bytes";
    if (rows(sums) != rows(left)) return "a dot product whose left tile does not have the rows of the sums";
    if (row_bytes(sums) != row_bytes(right)) return "a dot product whose right tile does not have the columns of the sums";
    if (row_bytes(left) / 4 != rows(right)) return "a dot product whose right tile does not have a row for each group of the left";
    const unsigned control = _mm_getcsr();
    _mm_setcsr(flushing);
    const int columns = row_bytes(sums) / 4, groups = row_bytes(left) / 4;
    for (int row = 0; row < rows(sums); row++) {
        void *row_sums = data[sums][row];
        if (operands.bf16)
            add_bf16(static_cast<float *>(row_sums), columns, data[left][row], groups, data[right]);
        else
            add_bytes(static_cast<uint32_t *>(row_sums), columns, data[left][row], groups, data[right], operands);
    }
    clear_rows(sums, rows(sums));
    _mm_setcsr(control);
    return nullptr;
}

} // namespace tiles
