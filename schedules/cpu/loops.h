#pragma once
#include "schedules/tables/nests.h"

namespace scalide {

/// Returns `lanes`, or the next power of two of a shorter extent.
int lanes_for(const Halide::Expr &extent, int lanes);

/// Vectorizes a loop of this extent. The last vector is masked, so elements beyond the extent are neither read nor written.
void vectorize_masked(Halide::Stage nest, const Halide::VarOrRVar &loop, const Halide::Expr &extent, int lanes);

/// Returns a new loop of the same kind, because a loop over a reduction domain can only become such loops.
Halide::VarOrRVar new_loop_like(const Halide::VarOrRVar &loop, const std::string &name);

/// Runs a loop of `count` iterations of `work` elements each in parallel tasks of about `task` elements. Does nothing if all of it is
/// provably one task. A parallel loop with one task costs only a call, because the runtime runs it in place.
void parallelize(Halide::Stage nest, const Halide::VarOrRVar &loop, const Halide::Expr &count, const Halide::Expr &work, int task);

/// Returns the product of loop extents.
Halide::Expr product(const std::vector<Halide::Expr> &extents);

/// Schedules a nest over all elements of an array, with axes from the innermost on. Vectors run along `axes[0]`, and rows are divided into
/// tasks. Tiles: task, lanes.
void schedule_nest(Halide::Stage nest, const std::vector<Halide::Var> &axes, const std::vector<Halide::Expr> &extents, const Tiles &tiles);
/// Schedules an output whose elements need no stage in its loops (elements.cpp). Tiles: task, lanes.
void schedule_elements(const LoweredKernel &kernel, const KernelOutput &output, const Tiles &tiles);

/// Vectorizes a stage `partial` (lower/rows/reduction.h): first all lanes at once, then the remaining columns, masked.
void vectorize_partial(Halide::Func partial);
/// Vectorizes and returns those stages `lane` that are separate Funcs.
std::vector<Halide::Func> vector_lanes(const LaneStages &stages);
/// Schedules the stages of reductions of whole arrays (lower/rows/reduction.h).
void schedule_totals(const TotalStages &stages);

} // namespace scalide
