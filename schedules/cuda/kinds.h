#pragma once
#include "schedules/schedule.h"

// Schedules for GPUs: the same for Halide's OpenCL and CUDA targets, one function a kind (schedules/cuda/<kind>.cpp), whose comment on top
// says what its tiles mean.
//
// What a compiled kernel asks of its surroundings: each output and each stage that is kept in memory is one launch, in order, on one
// stream. Stages in memory are allocated by halide_device_malloc and released by halide_device_free within the call of the kernel; nothing
// else is allocated, copied or waited for. An empty array makes launches of zero blocks, which must do nothing.
namespace scalide::cuda {

void schedule_scalar(LoweredKernel &kernel, const Tiles &tiles, const Halide::Target &target);
void schedule_map(LoweredKernel &kernel, const Tiles &tiles, const Halide::Target &target);

} // namespace scalide::cuda
