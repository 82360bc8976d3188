#pragma once
#include <Halide.h>
#include <functional>

// Products by the tile instructions of AMX. One step multiplies 32 rows by 64 bytes of depth with 64 bytes of depth by 32 columns, as two
// by two tiles of 16 rows and 64 bytes. Halide 21 schedules such products (MemoryType::AMXTile) only for single tiles, so a marker in a
// loop over steps stands for the product until loops and memory exist. Its pass puts Halide's own tile intrinsics there, and LLVM allocates
// and configures the tile registers: once a parallel task, if the task calls no function between tiles.

namespace scalide {

constexpr int amx_side = 32;        ///< rows and columns of a product
constexpr int amx_step_bytes = 64;  ///< bytes of the depth that one step multiplies
constexpr int amx_step_groups = 16; ///< groups of 4 bytes in a step

/// Elements of an operand's stage or argument in one step. `element` is the type that is multiplied: BFloat(16), Int(8) or UInt(8). The
/// stage may store words of several elements. The pass takes the distances in memory from the places of these elements. The distances of
/// rows and halves are the same in all steps. The place of `first` may depend on the step in any way.
struct AmxOperand {
    Halide::Type element;
    Halide::Expr first; ///< the first element of the step
    Halide::Expr row;   ///< left: the same in the next row; right: in the next group of 4 bytes along the depth
    Halide::Expr half;  ///< left: the same 16 rows further; right: 16 columns further
    Halide::Expr last;  ///< the last element of the step, so that Halide computes all of them
};

struct AmxOperands {
    AmxOperand lhs, rhs;
};

/// Returns the index of tiles at which an element is found: (column, row within the tile, tile, ...) from (column, row, ...).
std::vector<Halide::Expr> amx_place(std::vector<Halide::Expr> at);

/// Defines `tiles` as a product: 32 columns, 32 rows. `place`: the other arguments of `tiles`. `operands`: those of a step, from 0 to
/// `steps`; they must be padded with zeros along the depth. The type of `sum`, Float(32) or Int(32), is the type of the accumulators.
/// tdpbf16ps treats numbers below 2^-126 as zero and rounds to nearest (Intel SDM, volume 2).
void define_amx_product(Halide::Func tiles, const std::vector<Halide::Expr> &place, const Halide::Type &sum, const Halide::Expr &steps,
                        const std::function<AmxOperands(const Halide::Expr &step)> &operands);

/// Returns the lowering pass that replaces the markers. Every pipeline with a marker needs it, before passes that change reads.
Halide::Internal::IRMutator *amx_tiles_pass();

} // namespace scalide
