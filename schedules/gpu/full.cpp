#include "schedules/gpu/kinds.h"
#include "schedules/gpu/loops.h"

// full: one block of threads for each block of elements, then one block for the remaining elements and the results. There are no tiles: the
// blocks are part of the lowering, because they determine the order of the sum.
namespace scalide::gpu {

void schedule_full(LoweredKernel &kernel, const Tiles &, const Halide::Target &) {
    schedule_totals(kernel, std::get<TotalStages>(kernel.stages));
}

} // namespace scalide::gpu
