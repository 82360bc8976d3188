#pragma once
#include "schedules/schedule.h"
#include <optional>

// What schedules of all targets ask about a kernel.

namespace scalide {

/// The loop nest that writes an output: its update when it works in place.
Halide::Stage loop_nest(Halide::Func func);

/// The extents of an output by buffer dimension (last axis first), after telling Halide that its loops run over them.
std::vector<Halide::Expr> bound_loops(const LoweredKernel &kernel, const KernelOutput &output);

/// Fuses loops (innermost first) into one; nullopt of none.
std::optional<Halide::Var> fuse_loops(Halide::Stage nest, const std::vector<Halide::Var> &loops);

/// True when a row kernel sums over its rows (lower/rows/row_sums.h), and whether an output is made of such sums: it has no loop over rows.
bool sums_rows(const LoweredKernel &kernel);
bool is_sum_of_rows(const LoweredKernel &kernel, const KernelOutput &output);

/// Splits the loop over `rows` of a Func of a row kernel that sums over its rows into the blocks of these, `block`, and the rows of a
/// block, which run one after the other: block_row_loop(). For all that runs beside the running sums, and for these. `together` consecutive
/// rows are an iteration of that loop.
void split_rows(const LoweredKernel &kernel, Halide::Func func, const Halide::Var &rows, const Halide::Var &block, int together = 1);
Halide::Var block_row_loop();

/// True when the kernel moves elements, so that what it reads does not lie side by side.
bool moves_elements(const Program &kernel);

} // namespace scalide
