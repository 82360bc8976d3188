#include "schedules/gpu/kinds.h"
#include "schedules/gpu/loops.h"

// scalar: one thread of one launch computes all values. Shared values stay in its registers. There are no tiles.
namespace scalide::gpu {

void schedule_scalar(LoweredKernel &kernel, const Tiles &, const Halide::Target &) {
    const Halide::Func output = kernel.outputs.at(0).func; // has all results, because they have one shape
    Halide::Stage nest = loop_nest(output);
    nest.split(Halide::Var::outermost(), Halide::Var::outermost(), thread_loop(), 1).gpu_threads(thread_loop());
    spread_blocks(nest, {});
    for (Halide::Func stage : kernel.shared) stage.compute_at(output, thread_loop());
}

} // namespace scalide::gpu
