#pragma once
#include "lower/rows/reduction.h"

namespace scalide {

// Sums (or other reductions) over the rows of values that a row kernel computes, such as the gradients of a norm's gain and bias. Rows are
// computed in blocks, one after the other. Each row adds its terms to the running sums of its block, and then the blocks are added. The
// order of all sums depends only on the shape.

/// True for a reduction over the rows of the kernel's iteration space.
bool is_column_reduction(const Program &program, const Node &node);
/// True if a row kernel contains such reductions.
bool has_column_reductions(const Program &program);

/// Returns the rows of a block. With fewer than 1,024 blocks, multiprocessors are idle at the end: 132 of them run 396 blocks at a time.
/// Each further block writes one partial sum a column, 4 bytes that are read again. For blocks of 32 rows of three bf16 arrays and two sums
/// this is 8 % of the traffic.
int rows_of_block(const Extent &rows);

/// Number of lanes in which partial sums of blocks are added, each by one thread of a GPU. Lanes are combined as a tree.
inline constexpr int block_lanes = 16;

/// Binds the results of all column reductions and returns their stages. `axes` are the axes of the rows, then x.
RowSumStages sum_columns(Lowering &lowering, const std::vector<Halide::Var> &axes);

/// Name of the loop over the rows of a block. All loop nests of the kernel share it.
inline constexpr const char *block_row_name = "block_row";

} // namespace scalide
