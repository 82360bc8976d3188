#include "schedules/cpu/kinds.h"
#include "schedules/cpu/loops.h"

// map: one pass over each output. Tiles: see elements.cpp.
namespace scalide {

void schedule_map(LoweredKernel &kernel, const Tiles &tiles, const Halide::Target &) {
    for (const KernelOutput &output : kernel.outputs) {
        schedule_elements(kernel, output, tiles);
    }
}

} // namespace scalide
