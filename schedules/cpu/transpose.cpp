#include "schedules/cpu/kinds.h"

namespace scalide {

/// As a map, for now with gathers from the argument.
void schedule_transpose(LoweredKernel &kernel, const Tiles &tiles, const Halide::Target &target) { schedule_map(kernel, tiles, target); }

} // namespace scalide
