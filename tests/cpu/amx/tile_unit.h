#pragma once
#include <cstdint>

namespace tiles {

constexpr int tile_count = 8, max_rows = 16, max_row_bytes = 64;

/// The operand of LDTILECFG in memory.
struct Configuration {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
};
static_assert(sizeof(Configuration) == 64);

/// The two forms of a dot product: pairs of bf16, or groups of four bytes, whose operands are signed or unsigned.
struct Operands {
    bool bf16, left_signed, right_signed;
};

/// The tiles of one thread, as the Intel manual describes palette 1. A function that the CPU would refuse returns why, and nullptr
/// otherwise.
class TileUnit {
public:
    const char *configure(const Configuration &wanted);
    void release();
    Configuration configuration() const;
    const char *zero(int tile);
    const char *load(int tile, const char *base, int64_t stride);
    const char *store(int tile, char *base, int64_t stride);
    const char *multiply(int sums, int left, int right, Operands operands);

private:
    const char *check(int tile) const;
    int row_bytes(int tile) const { return shapes.row_bytes[tile]; }
    int rows(int tile) const { return shapes.rows[tile]; }
    void clear_rows(int tile, int from);

    Configuration shapes;
    alignas(64) unsigned char data[tile_count][max_rows][max_row_bytes];
};

} // namespace tiles
