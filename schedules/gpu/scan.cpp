#include "schedules/gpu/kinds.h"
#include "schedules/gpu/loops.h"

// scan: one thread for each line. It combines the elements one after the other, in memory. Tiles:
//   threads  threads of a block
namespace scalide::gpu {

void schedule_scan(LoweredKernel &kernel, const Tiles &tiles, const Halide::Target &) {
    keep(std::get<ScanStages>(kernel.stages).scan, tiles);
    for (const KernelOutput &output : kernel.outputs) schedule_elements(kernel, output, tiles);
}

} // namespace scalide::gpu
