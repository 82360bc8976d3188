#include "schedules/gpu/kinds.h"
#include "schedules/gpu/loops.h"

// sort: one thread for each line, in memory. Tiles:
//   threads  threads of a block
namespace scalide::gpu {

void schedule_sort(LoweredKernel &kernel, const Tiles &tiles, const Halide::Target &) {
    const auto &stages = std::get<SortStages>(kernel.stages);
    for (const Halide::Func &words : stages.words) keep(words, tiles);
    for (const Halide::Func &stage : {stages.network, stages.order}) {
        if (stage.defined()) keep(stage, tiles);
    }
    for (const KernelOutput &output : kernel.outputs) schedule_elements(kernel, output, tiles);
}

} // namespace scalide::gpu
