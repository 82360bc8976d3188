#pragma once

namespace scalide {

/// What a machine has for a kernel: limits that decide which form lowering gives it. The numbers are rows of schedules/tiles.yaml; what a
/// target has no row for is 0.
struct Budgets {
    int panel_vectors = 0;   ///< contract on CPUs: vectors of a panel of columns, a power of two
    int bf16_pairs = 0;      ///< contract on CPUs: 1 where products of pairs of bf16 numbers are faster than those of f32
    int shared_elements = 0; ///< row on GPUs: elements of a row that a block keeps in shared memory; the others are computed again
    int warp_columns = 0;    ///< row on GPUs: longest row that one warp makes
    int warp_registers = 0;  ///< row on GPUs: elements that a thread of such a warp keeps in registers
    int tile_bytes = 0;      ///< tiled: bytes of a tile
    int network = 0;         ///< sort: longest line that goes through a sorting network
    /// sort: what it costs in picoseconds, by which passes choose (SortCosts, transforms/target_facts.h).
    int network_step = 0, digits_line = 0, digits_element = 0, maximum_element = 0;
};

} // namespace scalide
