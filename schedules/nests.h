#pragma once
#include "schedules/schedule.h"
#include <optional>

// What schedules of all targets ask about a kernel.

namespace scalide {

/// The loop nest that writes an output: its update when it works in place.
Halide::Stage loop_nest(Halide::Func func);

/// The extents of an output by buffer dimension (last axis first), after telling Halide that its loops run over them.
std::vector<Halide::Expr> bound_loops(const LoweredKernel &kernel, const KernelOutput &output);

/// Fuses loops (innermost first) into one; nullopt of none.
std::optional<Halide::Var> fuse_loops(Halide::Stage nest, const std::vector<Halide::Var> &loops);

/// True when the kernel moves elements, so that what it reads does not lie side by side.
bool moves_elements(const Program &kernel);

} // namespace scalide
