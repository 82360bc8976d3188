#pragma once
#include "ir/program.h"

namespace scalide {

/// What `debug_callback` shows has to be in memory: its values become further results of the program, named by label. Scales, which are
/// computed in f64, are shown in f32, as they are stored.
Program add_shown_results(const Program &program);

/// The results from number `count` on leave the program again; the values stay, under the names of the results where these are free.
void drop_shown_results(Program &program, size_t count);

} // namespace scalide
