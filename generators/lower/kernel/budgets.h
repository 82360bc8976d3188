#pragma once

namespace scalide {

/// The limits of a target by which lowering chooses the form of a kernel. The numbers are rows of schedules/tiles.yaml. A number is 0 if
/// the target has no such row.
struct Budgets {
    int panel_vectors = 0;   ///< contract on CPUs: vectors in a panel of columns, a power of two
    int bf16_pairs = 0;      ///< matmuls and convolutions on CPUs: 1 if bf16 dot products of pairs are faster than f32 products
    int byte_quads = 0;      ///< contract on CPUs: 1 if the target has dot products of four u8 by four i8
    int tile_rows = 0;       ///< the same: least rows and columns of a product by AMX tiles; 0: the target has none
    int bf16_rows = 0;       ///< column on CPUs: rows of bf16 that are added in pairs before the sum is stored; 0: rows are added in f32
    int shared_elements = 0; ///< row on GPUs: elements of a row that a block keeps in shared memory; others are recomputed
    int warp_columns = 0;    ///< row on GPUs: longest row that one warp computes
    int warp_registers = 0;  ///< row on GPUs: elements that each thread of such a warp keeps in registers
    int tile_bytes = 0;      ///< tiled: bytes of a tile
    int network = 0;         ///< sort: longest line that a sorting network sorts
    int network_lines = 0;   ///< sort: the same, if there are at least 8 lines or a symbolic number of lines, which share vectors
    /// sort: costs in picoseconds, by which passes choose (SortCosts, transforms/analysis/target_facts.h).
    int network_step = 0, digits_line = 0, digits_element = 0, maximum_element = 0;
};

} // namespace scalide
