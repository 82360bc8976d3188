#pragma once
#include "lower/values/kinds.h"

namespace scalide {

/// One axis over which a sum of products runs.
struct SumAxis {
    Halide::Expr extent;
    double most = 0; ///< an upper bound of the extent
    /// Returns the condition under which there is a term at this position. Undefined: always. It may depend on the arguments of the sum.
    std::function<Halide::Expr(const Halide::Expr &position)> has_term = {};
};

/// Returns the sum axis for this extent of a kernel.
SumAxis sum_axis(const Extent &extent, const LoweredKernel &kernel);

/// Adds the term at a position of the axes to `sum`.
using AddTerm = std::function<Halide::Expr(const Halide::Expr &sum, const std::vector<Halide::Expr> &place)>;

/// Factors that are constant along blocks of the last axis of a sum, so that they multiply the sum of a block.
struct BlockFactors {
    int size = 0; ///< terms of a block along the last axis, at most 1,024; 0: all terms have the same factors
    /// Returns the sum of a block times its factors. `block`: its number. Undefined if there are no factors.
    std::function<Halide::Expr(const Halide::Expr &sum, const Halide::Expr &block)> multiply;
};

/// A sum of which whole tiles of elements are computed at once, so that its blocks have other arguments than the sum. Its axis counts
/// steps.
struct SumTiles {
    int step_terms = 0; ///< terms of a step; 0: there are no tiles
    /// Returns the index of the tiles' Func at which an element of the sum is found. `args`: the arguments of the sum.
    std::function<std::vector<Halide::Expr>(const std::vector<Halide::Expr> &args)> place;
    /// Defines a Func of tiles as the sums over `count` steps from step `first`. `vars`: arguments of the sum, and one for a block if there
    /// are several.
    std::function<void(Halide::Func tiles, const std::vector<Halide::Var> &vars, const Halide::Expr &first, const Halide::Expr &count)>
        define;
};

/// Returns the sum over `axes` (innermost first) as Funcs over `args`. The order of additions depends only on the extents.
///
/// One f32 accumulator that adds n random terms of one sign has a relative error of up to u * sqrt(n): 2e-4 at n = 1e6 (u = 2^-24; Higham,
/// Accuracy and Stability of Numerical Algorithms, 4.2). So one accumulator adds at most 1,024 terms, a second one adds up to 64 such
/// blocks, and a third one adds these sections. The errors of blocks have both signs and partly cancel: 1e-6 up to n = 1e7.
SumStages sum_in_blocks(const std::vector<Halide::Var> &args, const std::vector<SumAxis> &axes, const Halide::Expr &zero,
                        const AddTerm &add_term, const BlockFactors &factors = {});
/// Returns the same sum, in blocks of as many terms, if tiles add them. `steps`: the only axis.
SumStages sum_in_tiles(const std::vector<Halide::Var> &args, const SumAxis &steps, const Halide::Expr &zero, const SumTiles &tiles,
                       const BlockFactors &factors);
/// Computes the same bits by one update over all terms, for schedules that cannot place a block. The components of `last` are the
/// accumulators.
SumStages sum_in_one_loop(const std::vector<Halide::Var> &args, const std::vector<SumAxis> &axes, const Halide::Expr &zero,
                          const AddTerm &add_term);

/// The number of blocks in a section. A sum of more blocks has two accumulators: one for full sections, one for the open section.
constexpr int section_blocks = 64;
bool has_sections(const Halide::Expr &blocks);
/// True if the block of this number is the last one of its section.
Halide::Expr ends_section(const Halide::Expr &block);

} // namespace scalide
