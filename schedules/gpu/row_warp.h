#pragma once
#include "schedules/tables/tiles.h"

namespace scalide::gpu {

/// One warp for each row, several rows in a block. All stages of a row are in registers, and sums are exchanged between threads. So there
/// is no barrier and no shared memory. (OpenCL has no such exchanges and uses shared memory.) Tiles: warps, the rows of a block.
void schedule_row_in_warp(LoweredKernel &kernel, const Tiles &tiles, const Halide::Target &target);

} // namespace scalide::gpu
