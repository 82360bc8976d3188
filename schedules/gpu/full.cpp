#include "schedules/gpu/kinds.h"
#include "schedules/gpu/loops.h"

// full: a block of threads for each block of elements, then one block for the rest and for their results. No tiles: the blocks are part of
// the lowering, as they fix the order of the sum.
namespace scalide::gpu {

void schedule_full(LoweredKernel &kernel, const Tiles &, const Halide::Target &) {
    schedule_totals(kernel, std::get<TotalStages>(kernel.stages));
}

} // namespace scalide::gpu
