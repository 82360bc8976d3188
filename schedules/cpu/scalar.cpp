#include "schedules/cpu/kinds.h"

namespace scalide {

/// scalar: rank-0 values need no loops.
void schedule_scalar(LoweredKernel &, const Tiles &, const Halide::Target &) {}

} // namespace scalide
