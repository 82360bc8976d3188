#include "schedules/cuda/kinds.h"
#include "schedules/cuda/loops.h"

// scalar: one thread makes all values. Tiles:
//   threads  of a block, where stages are kept
namespace scalide::cuda {

void schedule_scalar(LoweredKernel &kernel, const Tiles &tiles, const Halide::Target &) {
    for (const Halide::Func &stage : kernel.stages["shared"]) keep(stage, tiles);
    for (const KernelOutput &output : kernel.outputs) schedule_elements(kernel, output, tiles);
}

} // namespace scalide::cuda
