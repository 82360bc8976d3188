#include "schedules/gpu/kinds.h"
#include "schedules/gpu/loops.h"

// scatter: the copy is a map. A thread has one index of the axes that every window covers, and applies all updates there in order. Tiles:
//   threads  threads of a block
namespace scalide::gpu {

void schedule_scatter(LoweredKernel &kernel, const Tiles &tiles, const Halide::Target &) {
    bound_loops(kernel, kernel.outputs[0]);
    spread_all(kernel.outputs[0].func, tiles.at("threads"));
}

} // namespace scalide::gpu
