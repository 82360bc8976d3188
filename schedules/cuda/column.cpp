#include "schedules/cuda/kinds.h"
#include "schedules/cuda/loops.h"

// column: a thread a column of a block of rows, whose sums are kept; the thread of an output adds them up. Tiles:
//   threads  of a block of threads
namespace scalide::cuda {
void schedule_column(LoweredKernel &kernel, const Tiles &tiles, const Halide::Target &) {
    for (const Halide::Func &sums : kernel.stages["block"]) keep(sums, tiles);
    for (const KernelOutput &output : kernel.outputs) {
        if (!output.func.args().empty()) schedule_elements(kernel, output, tiles);
    }
    for (Halide::Func total : kernel.stages["total"]) {
        if (total.args().empty()) continue;
        if (const KernelOutput *reader = only_reader(kernel, total)) {
            total.compute_at(reader->func, thread_loop());
        } else {
            keep(total, tiles);
        }
    }
    schedule_totals(kernel);
}

} // namespace scalide::cuda
