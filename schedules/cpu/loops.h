#pragma once
#include "schedules/nests.h"

namespace scalide {

/// Vectorizes a loop of this extent; what is left over is masked, never read or written.
void vectorize_masked(Halide::Stage nest, const Halide::VarOrRVar &loop, const Halide::Expr &extent, int lanes);

/// Runs a loop of `count` iterations of `work` elements each in parallel tasks of about `task` elements. Nothing is done when all is known
/// to be one task; a parallel loop of one task costs a call, because the runtime runs it in place.
void parallelize(Halide::Stage nest, const Halide::Var &loop, const Halide::Expr &count, const Halide::Expr &work, int task);

/// The product of loop extents.
Halide::Expr product(const std::vector<Halide::Expr> &extents);

/// Runs a nest over all elements of an array: vectors along `axes[0]`, rows in tasks. Innermost axis first. Tiles: task, lanes.
void schedule_nest(Halide::Stage nest, const std::vector<Halide::Var> &axes, const std::vector<Halide::Expr> &extents, const Tiles &tiles);
/// Schedules an output whose elements do not depend on each other's loops (elements.cpp). Tiles: task, lanes.
void schedule_elements(const LoweredKernel &kernel, const KernelOutput &output, const Tiles &tiles);

/// Vectorizes a stage `partial` (lower/rows/reduction.h): all lanes at once; then what is left of the columns, masked.
void vectorize_partial(Halide::Func partial);
/// The stages `lane` that are Funcs of their own, each vectorized.
std::vector<Halide::Func> vector_lanes(const LaneStages &stages);
/// Schedules what lower/rows/reduction.h makes for reductions of whole arrays.
void schedule_totals(const TotalStages &stages);

} // namespace scalide
