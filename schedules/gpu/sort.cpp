#include "schedules/gpu/kinds.h"
#include "schedules/gpu/loops.h"

// sort: a thread a line, in memory. Tiles:
//   threads  of a block
namespace scalide::gpu {

void schedule_sort(LoweredKernel &kernel, const Tiles &tiles, const Halide::Target &) {
    for (const auto &[name, stages] : kernel.stages)
        for (const Halide::Func &stage : stages) keep(stage, tiles);
    for (const KernelOutput &output : kernel.outputs) schedule_elements(kernel, output, tiles);
}

} // namespace scalide::gpu
