#pragma once
#include "lower/rows/block_reduction.h"

namespace scalide {

// Rows that one warp of a GPU computes. Each of its 32 threads holds `warp_neighbours` adjacent elements out of every most_lanes elements.
// The whole row is in registers. Threads exchange the lanes of a sum, which combine in the order of reduce_lanes().

constexpr int warp_neighbours = most_lanes / warp_threads;

/// Returns the thread that computes the element of this column.
Halide::Expr thread_of(const Halide::Expr &column);

/// Does reduce_lanes() for a row in a warp. `space` covers the columns up to a multiple of most_lanes; `inside` must mark the real ones.
/// Returns the last exchange, which has the same value in every thread.
Halide::Func reduce_in_warp(Lowering &lowering, const ReductionGroup &group, const ReductionSpace &space, RowStages &stages);

} // namespace scalide
