#pragma once
#include "lower/rows/block_reduction.h"
#include <optional>

namespace scalide {

// Rows that one warp of a GPU computes. Each of its 32 threads holds `neighbours` adjacent elements, which it reads at once, out of every
// 32 * neighbours elements. The whole row is in registers, and the threads exchange the partial results of a reduction.

struct WarpShape {
    int neighbours;
    bool keeps_order; ///< sums have the order of reduce_lanes(); otherwise an order that depends on the shape and the dtypes
    int elements() const { return warp_threads * neighbours; } ///< that all threads read at once
    /// Returns the columns, rounded up to a multiple of elements().
    int padded(int64_t columns) const { return int((columns + elements() - 1) / elements() * elements()); }
};

/// Returns the shape for rows of this many columns. CUDA threads read 16 bytes of the smallest elements if rows are a multiple, but at most
/// 32 bytes of the largest ones, and fewer if many threads would have no elements in the last step. OpenCL threads have two elements.
/// Nothing if rows must be whole (`is_whole`) but no shape divides them.
std::optional<WarpShape> warp_shape(int64_t columns, int smallest_bytes, int largest_bytes, bool is_whole, bool is_cuda);

/// Returns the thread that computes the element of this column.
Halide::Expr thread_of(const Halide::Expr &column, const WarpShape &shape);

/// Does reduce_lanes() for a row in a warp. `space` covers the columns up to shape.padded(); `inside` must mark the real ones. Returns the
/// last exchange, which has the same value in every thread.
Halide::Func reduce_in_warp(Lowering &lowering, const ReductionGroup &group, const ReductionSpace &space, const WarpShape &shape,
                            RowStages &stages);

} // namespace scalide
