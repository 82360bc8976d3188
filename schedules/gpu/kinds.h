#pragma once
#include "schedules/schedule.h"

// Schedules for GPUs: the same for Halide's OpenCL and CUDA targets, one function a kind (schedules/gpu/<kind>.cpp), whose comment on top
// says what its tiles mean.
//
// What a compiled kernel asks of its surroundings: each output and each stage that is kept in memory is one launch, in order, on one
// stream. Stages in memory are allocated by halide_device_malloc and released by halide_device_free within the call of the kernel; nothing
// else is allocated, copied or waited for. Where an array is empty, stages of zero bytes and launches of zero blocks occur, which must do
// nothing.
//
// Sums have the order that the lowering gave them, so results have the bits that they have on a CPU with FMA (tests/gpu).
namespace scalide::gpu {

Schedule schedule_scalar, schedule_map, schedule_row, schedule_column, schedule_full, schedule_transpose, schedule_scan, schedule_scatter,
    schedule_sort, schedule_contract, schedule_window, schedule_tiled;

} // namespace scalide::gpu
