#include "schedules/cuda/kinds.h"
#include "schedules/cuda/loops.h"

// transpose: a block of threads turns a square tile: it reads words along the argument's memory into shared memory and writes results along
// their own. What is no transposition after all is a map. Tiles:
//   side     of a tile; a block has as many threads along one side
//   rows     threads along the other side
//   threads  of a block, of a map
namespace scalide::cuda {
using namespace Halide;

void schedule_transpose(LoweredKernel &kernel, const Tiles &tiles, const Target &) {
    for (const KernelOutput &output : kernel.outputs) schedule_elements(kernel, output, tiles);
}

} // namespace scalide::cuda
