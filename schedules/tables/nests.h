#pragma once
#include "schedules/tables/tiles.h"
#include <optional>

// Functions that schedules of all targets use.

namespace scalide {

/// Returns the loop nest that writes an output: its update if the output is updated in place.
Halide::Stage loop_nest(Halide::Func func);

/// Tells Halide the bounds of an output's loops. Returns its extents by buffer dimension (last axis first).
std::vector<Halide::Expr> bound_loops(const LoweredKernel &kernel, const KernelOutput &output);

/// Fuses loops (innermost first) into one. Returns nullopt if there are none.
std::optional<Halide::Var> fuse_loops(Halide::Stage nest, const std::vector<Halide::Var> &loops);

/// sums_rows: true if a row kernel sums over its rows (lower/rows/row_sums.h). is_sum_of_rows: true if an output is computed from such
/// sums; it has no loop over rows.
bool sums_rows(const LoweredKernel &kernel);
bool is_sum_of_rows(const LoweredKernel &kernel, const KernelOutput &output);

/// Splits the loop over `rows` into blocks of rows, `block`, and the rows of a block, which run one after the other: block_row_loop(). This
/// applies to running sums and to all Funcs that share their loops. `together` consecutive rows are one iteration of the inner loop.
void split_rows(const LoweredKernel &kernel, Halide::Func func, const Halide::Var &rows, const Halide::Var &block, int together = 1);
Halide::Var block_row_loop();

/// True if the kernel moves elements, so that adjacent elements may come from non-adjacent memory.
bool moves_elements(const Program &kernel);

} // namespace scalide
