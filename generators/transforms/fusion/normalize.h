#pragma once
#include "ir/program.h"

namespace scalide {

/// Rewrites every reduction to reduce trailing, leading or all axes. Other reductions read a transposed operand. Its reduced axes come
/// first if the last axis remains and fills a vector, because vectors then run along memory. Otherwise they come last. No reduction keeps
/// an axis of extent 1, because reduction kernels count rows and columns, and such an axis is neither. Reducing it becomes a reshape; a
/// float sum also adds 0.
Program move_reduced_axes(const Program &program);

/// Rewrites each dynamic_update_slice that updates an inout argument (groups/updates.h) to a scatter of one window. A scatter kernel can
/// write the window alone; a map computes every element.
Program scatter_into_arguments(const Program &program);

} // namespace scalide
