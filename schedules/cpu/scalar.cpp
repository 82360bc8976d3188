#include "schedules/cpu/kinds.h"

namespace scalide {

/// Rank 0: there are no loops.
void schedule_scalar(LoweredKernel &, const Tiles &, const Halide::Target &) {}

} // namespace scalide
