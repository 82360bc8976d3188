#pragma once
#include "lower/rows/reduction.h"

namespace scalide {

// Rows that a warp of a GPU makes: 32 threads, each with `warp_neighbours` neighbours out of every most_lanes elements. All of a row is in
// registers, and lanes of a sum meet by exchanges between threads, in the order of reduce_lanes.

constexpr int warp_threads = 32, warp_neighbours = most_lanes / warp_threads;

/// The thread that makes the element in this column.
Halide::Expr thread_of(const Halide::Expr &column);

/// reduce_lanes for the warp of a row. `space` has the columns of a row up to a multiple of most_lanes, and says which are inside. Returns
/// the last exchange between threads: the same everywhere.
Halide::Func reduce_in_warp(Lowering &lowering, const ReductionGroup &group, const ReductionSpace &space, RowStages &stages);

} // namespace scalide
