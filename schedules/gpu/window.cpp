#include "schedules/gpu/kinds.h"
#include "schedules/gpu/loops.h"

// window: a thread an element of the result, and of what a result needs of large windows. Tiles:
//   threads  of a block
namespace scalide::gpu {

void schedule_window(LoweredKernel &kernel, const Tiles &tiles, const Halide::Target &) {
    for (const char *name : {"winner", "fold"}) {
        const auto stages = kernel.stages.find(name);
        if (stages != kernel.stages.end()) keep(stages->second[0], tiles);
    }
    // What convolutions pack for vectors is computed where it is read. Their product is added up in memory: Halide takes the panel that a
    // thread needs of it for all panels, where their number is not static.
    const auto product = kernel.stages.find("product");
    if (product != kernel.stages.end()) {
        product->second[0].compute_root();
        spread_all(product->second[0], tiles.at("threads"));
    }
    for (const KernelOutput &output : kernel.outputs) schedule_elements(kernel, output, tiles);
}

} // namespace scalide::gpu
