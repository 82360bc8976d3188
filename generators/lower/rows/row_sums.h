#pragma once
#include "lower/rows/reduction.h"

namespace scalide {

// Sums (any reductions) over the rows of what a row kernel computes, such as the gradients of a norm's gain and bias: rows are made in
// blocks, one after the other, and each adds its terms to the running sums of its block. Then blocks are added. The
// order of all sums depends on the shape alone.

/// A reduction over the rows of the kernel's iteration space.
bool is_column_reduction(const Program &program, const Node &node);
/// Whether a row kernel has any.
bool has_column_reductions(const Program &program);

/// Rows of a block. Fewer blocks than 1024 leave multiprocessors idle at the end (132 of them make 396 at a time); each of more writes as
/// many partial sums as a row has columns, 4 bytes that are read again: of 32 rows of three bf16 arrays and two sums 8 %.
int rows_of_block(const Extent &rows);

/// Partial sums of blocks are added in so many lanes, by as many threads of a GPU, and lanes as a tree.
inline constexpr int block_lanes = 16;

/// Binds the results of all column reductions, and gives the stages that make them. `axes` are those of the rows, then x.
RowSumStages sum_columns(Lowering &lowering, const std::vector<Halide::Var> &axes);

/// The name of the loop over the rows of a block, which all nests of the kernel share.
inline constexpr const char *block_row_name = "block_row";

} // namespace scalide
