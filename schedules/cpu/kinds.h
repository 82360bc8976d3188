#pragma once
#include "schedules/schedule.h"

namespace scalide {

// One function a kind (schedules/cpu/<kind>.cpp): what schedule() does on a CPU. The comment on top of each file says what its tiles mean.
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

} // namespace scalide
