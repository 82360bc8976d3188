#include "schedules/gpu/kinds.h"
#include "schedules/gpu/loops.h"

// window: one thread for each element of the result, and for each element of a reduction over large windows. Tiles:
//   threads  threads of a block
namespace scalide::gpu {

void schedule_window(LoweredKernel &kernel, const Tiles &tiles, const Halide::Target &) {
    if (const auto *window = std::get_if<WindowStages>(&kernel.stages)) {
        for (const Halide::Func &stage : {window->winner, window->fold}) {
            if (stage.defined()) keep(stage, tiles);
        }
    }
    // The packed operands of convolutions are computed where they are read. Their product is summed in memory: if the number of panels is
    // not static, Halide assumes that a thread needs all panels.
    if (const auto *convolution = std::get_if<ConvolutionStages>(&kernel.stages)) {
        Halide::Func sum = convolution->product.last;
        spread_all(sum.compute_root(), tiles.at("threads"));
    }
    for (const KernelOutput &output : kernel.outputs) schedule_elements(kernel, output, tiles);
}

} // namespace scalide::gpu
