#pragma once
#include "ir/program.h"

namespace scalide {

/// What `debug_callback` shows has to be in memory: its values become further results of the program, `shown.0`, `shown.1` ..., and the
/// setting `shown` has their labels. Scales, which are computed in f64, are shown in f32, as they are stored.
Program add_shown_results(const Program &program);

/// These results leave the program again; their values stay, under the labels where these are free.
void drop_shown_results(Program &program);

} // namespace scalide
