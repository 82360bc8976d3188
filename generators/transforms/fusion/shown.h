#pragma once
#include "ir/program.h"

namespace scalide {

/// Makes each value that `debug_callback` shows a further result of the program, so that it is stored in memory. The results are named
/// `shown.0`, `shown.1` ...; the attribute `shown` holds their labels. Scales are computed in f64 and shown in f32, because they are stored
/// in f32.
Program add_shown_results(const Program &program);

/// Removes these results from the program. Their values stay. A value is renamed to its label if no other value has that name.
void drop_shown_results(Program &program);

} // namespace scalide
