#include "schedules/cuda/kinds.h"
#include "schedules/cuda/loops.h"
#include <set>

// column: a thread a column of a block of rows, whose sums are kept; the thread of an output adds them up. Tiles:
//   threads  of a block of threads
namespace scalide::cuda {
void schedule_column(LoweredKernel &kernel, const Tiles &tiles, const Halide::Target &) {
    for (const Halide::Func &sums : kernel.stages["block"]) keep(sums, tiles);
    std::set<const KernelOutput *> done;
    for (const Halide::Func &total : kernel.stages["total"]) {
        if (total.args().empty()) continue;
        const KernelOutput *reader = only_reader(kernel, total);
        if (!reader || total.args().size() > most_tile_loops) {
            keep(total, tiles);
        } else if (done.insert(reader).second) {
            schedule_elements_with(kernel, *reader, total, tiles);
        } else {
            compute_one(total, reader->func);
        }
    }
    for (const KernelOutput &output : kernel.outputs) {
        if (!output.func.args().empty() && !done.contains(&output)) schedule_elements(kernel, output, tiles);
    }
    schedule_totals(kernel);
}

} // namespace scalide::cuda
