#include "schedules/cuda/kinds.h"
#include "schedules/cuda/loops.h"

// map: one thread an element of each output. Tiles:
//   threads  of a block
namespace scalide::cuda {

void schedule_map(LoweredKernel &kernel, const Tiles &tiles, const Halide::Target &) {
    for (const Halide::Func &stage : kernel.stages["shared"]) keep(stage, tiles);
    for (const KernelOutput &output : kernel.outputs) schedule_elements(kernel, output, tiles);
}

} // namespace scalide::cuda
