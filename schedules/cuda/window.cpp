#include "schedules/cuda/kinds.h"
#include "schedules/cuda/loops.h"

// window: a thread an element of the result, and of what a result needs of large windows. Tiles:
//   threads  of a block
namespace scalide::cuda {

void schedule_window(LoweredKernel &kernel, const Tiles &tiles, const Halide::Target &) {
    for (const char *name : {"winner", "fold", "product"}) { // what convolutions pack for vectors is computed where it is read
        const auto stages = kernel.stages.find(name);
        if (stages != kernel.stages.end()) keep(stages->second[0], tiles);
    }
    for (const KernelOutput &output : kernel.outputs) schedule_elements(kernel, output, tiles);
}

} // namespace scalide::cuda
