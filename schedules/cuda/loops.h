#pragma once
#include "schedules/schedule.h"

namespace scalide::cuda {

/// The definition that writes an output: its update when it works in place.
Halide::Stage loop_nest(Halide::Func func);

/// The extents of an output by buffer dimension (last axis first), after telling Halide that its loops run over them.
std::vector<Halide::Expr> bound_loops(const LoweredKernel &kernel, const KernelOutput &output);

/// One thread an element: `loops` (innermost first) are one line of threads, reductions run inside of a thread. No loops: one thread.
void spread(Halide::Stage nest, const std::vector<Halide::Var> &loops, int threads);
/// Spreads every definition of a Func; an update over the arguments that it does not reduce.
void spread_all(Halide::Func func, int threads);

/// Keeps a stage in device memory: a launch of its own for each definition. Tiles: threads.
void keep(Halide::Func stage, const Tiles &tiles);
/// An output whose elements do not depend on each other's loops. Tiles: threads.
void schedule_elements(const LoweredKernel &kernel, const KernelOutput &output, const Tiles &tiles);

} // namespace scalide::cuda
