#include "schedules/cpu/kinds.h"

namespace scalide {

/// Rank 0: there are no loops.
void schedule_scalar(LoweredKernel &kernel, const Tiles &, const Halide::Target &) {
    for (Halide::Func &stage : kernel.stages["shared"]) stage.compute_root();
}

} // namespace scalide
