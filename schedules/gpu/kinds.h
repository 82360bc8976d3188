#pragma once
#include "schedules/tables/tiles.h"

// Schedules for GPUs, for both Halide's OpenCL and CUDA targets. There is one function for each kernel kind (schedules/gpu/<kind>.cpp). The
// comment at the top of each file explains its tiles.
//
// Requirements of a compiled kernel: each output, and each stage in device memory, is one launch. Launches run in order on one stream.
// Stages in device memory are allocated by halide_device_malloc and released by halide_device_free during the call. The kernel allocates,
// copies and waits for nothing else. For empty arrays, it uses stages of zero bytes and launches of zero blocks, which must do nothing.
//
// Sums have the order that lowering gave them, so results have the same bits as on a CPU with FMA (tests/gpu).
namespace scalide::gpu {

Schedule schedule_scalar, schedule_map, schedule_row, schedule_column, schedule_full, schedule_transpose, schedule_scan, schedule_scatter,
    schedule_sort, schedule_contract, schedule_window, schedule_tiled;

} // namespace scalide::gpu
