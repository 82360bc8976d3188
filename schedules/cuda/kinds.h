#pragma once
#include "schedules/schedule.h"

// Schedules for GPUs: the same for Halide's OpenCL and CUDA targets, one function a kind (schedules/cuda/<kind>.cpp), whose comment on top
// says what its tiles mean.
//
// What a compiled kernel asks of its surroundings: each output and each stage that is kept in memory is one launch, in order, on one
// stream. Stages in memory are allocated by halide_device_malloc and released by halide_device_free within the call of the kernel; nothing
// else is allocated, copied or waited for. Where an array is empty, stages of zero bytes and launches of zero blocks occur, which must do
// nothing.
//
// Sums have the order that the lowering gave them, so results have the bits that they have on a CPU with FMA (tests/gpu).
namespace scalide::cuda {

void schedule_scalar(LoweredKernel &kernel, const Tiles &tiles, const Halide::Target &target);
void schedule_map(LoweredKernel &kernel, const Tiles &tiles, const Halide::Target &target);
void schedule_row(LoweredKernel &kernel, const Tiles &tiles, const Halide::Target &target);
void schedule_column(LoweredKernel &kernel, const Tiles &tiles, const Halide::Target &target);
void schedule_full(LoweredKernel &kernel, const Tiles &tiles, const Halide::Target &target);
void schedule_transpose(LoweredKernel &kernel, const Tiles &tiles, const Halide::Target &target);
void schedule_scan(LoweredKernel &kernel, const Tiles &tiles, const Halide::Target &target);
void schedule_scatter(LoweredKernel &kernel, const Tiles &tiles, const Halide::Target &target);
void schedule_sort(LoweredKernel &kernel, const Tiles &tiles, const Halide::Target &target);
void schedule_contract(LoweredKernel &kernel, const Tiles &tiles, const Halide::Target &target);
void schedule_window(LoweredKernel &kernel, const Tiles &tiles, const Halide::Target &target);

} // namespace scalide::cuda
