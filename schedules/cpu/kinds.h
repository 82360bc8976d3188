#pragma once
#include "schedules/schedule.h"

namespace scalide {

// One function a kind (schedules/cpu/<kind>.cpp): what schedule() does on a CPU. The comment on top of each file says what its tiles mean.
Schedule schedule_scalar, schedule_map, schedule_row, schedule_column, schedule_full, schedule_transpose, schedule_scan, schedule_scatter,
    schedule_sort, schedule_contract, schedule_window, schedule_tiled;

} // namespace scalide
