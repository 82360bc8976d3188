#pragma once
#include "lower/kinds.h"

namespace scalide {

/// One axis that a sum of products runs along.
struct SumAxis {
    Halide::Expr extent;
    double most = 0; ///< the extent is at most this
};

/// The axis of this extent of a kernel.
SumAxis sum_axis(const Extent &extent, const LoweredKernel &kernel);

/// `sum` and the term at a place of the axes.
using AddTerm = std::function<Halide::Expr(const Halide::Expr &sum, const std::vector<Halide::Expr> &place)>;

/// The sum over `axes` (innermost first) as Funcs over `args`: the order in which it is added depends on the extents alone.
///
/// One f32 accumulator that adds n random terms of one sign is wrong by up to u * sqrt(n) of the sum (u = 2^-24; Higham, Accuracy and
/// Stability of Numerical Algorithms, 4.2): 2e-4 at n = 1e6. So an accumulator adds blocks of at most 1,024 terms, another one up to 64
/// blocks, a third one these sections. The errors of blocks are to either side and cancel in part: 1e-6 up to n = 1e7.
SumStages sum_in_blocks(const std::vector<Halide::Var> &args, const std::vector<SumAxis> &axes, const Halide::Expr &zero,
                        const AddTerm &add_term);
/// The same bits from one update over all terms, for schedules that cannot place a block: `last` has the accumulators as components.
SumStages sum_in_one_loop(const std::vector<Halide::Var> &args, const std::vector<SumAxis> &axes, const Halide::Expr &zero,
                          const AddTerm &add_term);

/// A fold of more blocks than a section has keeps the sections that are full beside the one that is not.
constexpr int section_blocks = 64;
bool has_sections(const Halide::Expr &blocks);
/// The block of this number is the last one of its section.
Halide::Expr ends_section(const Halide::Expr &block);

} // namespace scalide
