#include "schedules/cpu/kinds.h"
#include "schedules/cpu/loops.h"

// full: blocks in parallel, whole vectors in each; then the rest and the blocks' results one after the other. No tiles: the blocks are part
// of the lowering, as they fix the order of the sum.
namespace scalide {

void schedule_full(LoweredKernel &kernel, const Tiles &, const Halide::Target &) { schedule_totals(std::get<TotalStages>(kernel.stages)); }

} // namespace scalide
