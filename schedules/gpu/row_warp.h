#pragma once
#include "schedules/schedule.h"

namespace scalide::gpu {

/// A warp a row, several rows a block. What a row needs is in registers, sums are exchanged between threads: no barrier and no shared
/// memory. (On OpenCL, which has no such exchanges, in shared memory.) Tiles: warps, rows of a block.
void schedule_row_in_warp(LoweredKernel &kernel, const Tiles &tiles, const Halide::Target &target);

} // namespace scalide::gpu
