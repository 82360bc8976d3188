#pragma once
#include "schedules/tables/tiles.h"

namespace scalide {

// One function for each kernel kind that runs on CPUs (schedules/cpu/<kind>.cpp), which schedule() calls for CPUs. The comment at the top
// of each file explains its tiles.
Schedule schedule_scalar, schedule_map, schedule_row, schedule_column, schedule_full, schedule_transpose, schedule_scan, schedule_scatter,
    schedule_sort, schedule_contract, schedule_window, schedule_small;

} // namespace scalide
