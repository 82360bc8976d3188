#include "schedules/cpu/kinds.h"
#include "schedules/cpu/loops.h"

// full: blocks run in parallel, each in whole vectors. Then the remaining elements and the blocks' results are added one after the other.
// There are no tiles: the blocks are part of the lowering, because they determine the order of the sum.
namespace scalide {

void schedule_full(LoweredKernel &kernel, const Tiles &, const Halide::Target &) { schedule_totals(std::get<TotalStages>(kernel.stages)); }

} // namespace scalide
