#include "schedules/gpu/kinds.h"
#include "schedules/gpu/loops.h"

// window: a thread an element of the result, and of what a result needs of large windows. Tiles:
//   threads  of a block
namespace scalide::gpu {

void schedule_window(LoweredKernel &kernel, const Tiles &tiles, const Halide::Target &) {
    if (const auto *window = std::get_if<WindowStages>(&kernel.stages)) {
        for (const Halide::Func &stage : {window->winner, window->fold}) {
            if (stage.defined()) keep(stage, tiles);
        }
    }
    // What convolutions pack for vectors is computed where it is read. Their product is added up in memory: Halide takes the panel that a
    // thread needs of it for all panels, where their number is not static.
    if (const auto *convolution = std::get_if<ConvolutionStages>(&kernel.stages)) {
        Halide::Func sum = convolution->product.last;
        spread_all(sum.compute_root(), tiles.at("threads"));
    }
    for (const KernelOutput &output : kernel.outputs) schedule_elements(kernel, output, tiles);
}

} // namespace scalide::gpu
