#pragma once
#include "lower/rows/reduction.h"
#include "lower/values/thread_access.h"

namespace scalide {

// Reductions by all threads of a block of a CUDA GPU. A thread reduces `neighbours` adjacent elements, which it reads at once, out of every
// warps * 32 * neighbours elements. The threads of a warp exchange their results; then the results of warps are combined. So a reduction
// needs one barrier. The order of a sum depends only on the shape and the dtypes. It is another order than that of reduce_lanes().

constexpr int warp_threads = 32;

/// Returns the thread with which `thread` exchanges values: its number with the bit `distance` flipped.
Halide::Expr partner(const Halide::Expr &thread, int distance);

/// The threads of a block and the elements that a thread reads at once.
struct BlockShape {
    int warps, neighbours;
    int elements() const { return warps * warp_threads * neighbours; } ///< that all threads read at once
};

/// Returns the shape for lines of this many elements. `bytes`: of the smallest element that a thread reads. Threads read 16 bytes if lines
/// are a multiple.
BlockShape block_shape(int64_t columns, int bytes);

/// Does reduce_lanes() by all threads of a block. `space.columns` must be a multiple of shape.elements(); `space.inside` must mark the
/// elements that belong to the space, if not all do.
Halide::Func reduce_by_block(Lowering &lowering, const ReductionGroup &group, ReductionSpace space, const BlockShape &shape,
                             LaneStages &stages);

} // namespace scalide
