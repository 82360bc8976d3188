#include "schedules/gpu/kinds.h"
#include "schedules/gpu/loops.h"
#include <algorithm>
#include <set>

// column: one thread for each column of a block of rows. For low-precision elements, a thread has as many adjacent columns as fit into a
// word, if lines are known to be a multiple. Its sums are stored, and the thread of an output adds them. Tiles:
//   threads  threads of a block
namespace scalide::gpu {
namespace {
using namespace Halide;

/// Number of columns of which a thread reads one word.
int columns_of_thread(const LoweredKernel &kernel, const ColumnSums &sums) {
    int count = 4;
    for (const Argument &argument : kernel.program.arguments) {
        const Type &type = kernel.program.type(argument.value);
        if (!type.is_scalar()) count = std::min(count, std::max(1, 4 / size_of(type.dtype)));
    }
    const Expr columns = to_expr(sums.columns, kernel);
    const auto divides = [&] { return Internal::is_const_zero(Internal::simplify(columns % count)); };
    while (!divides()) count /= 2;
    return moves_elements(kernel.program) || sums.block.args().size() > most_tile_loops ? 1 : count;
}

void keep_blocks(Func sums, int columns, bool is_cuda, const Tiles &tiles) {
    if (columns == 1) return keep(sums, tiles);
    const Var x = sums.args()[0], neighbour("neighbour");
    Func kept = sums.in();
    const std::vector<Var> loops = kept.args();
    kept.compute_root().split(loops[0], loops[0], neighbour, columns);
    spread_tiles(kept, loops, tiles.at("threads"));
    is_cuda ? kept.vectorize(neighbour) : kept.unroll(neighbour);
    sums.compute_at(kept, thread_loop());
    for (const Var &arg : sums.args()) sums.bound_extent(arg, arg.name() == x.name() ? columns : 1);
    sums.update().reorder({VarOrRVar(x), VarOrRVar(sums.rvars(0)[0])});
    read_ahead(sums, 0);
    is_cuda ? sums.vectorize(x).update().vectorize(x) : sums.unroll(x).update().unroll(x);
}

} // namespace

void schedule_column(LoweredKernel &kernel, const Tiles &tiles, const Target &target) {
    const auto &stages = std::get<ColumnStages>(kernel.stages);
    align_arrays(kernel);
    for (const ColumnSums &sums : stages.sums)
        keep_blocks(sums.block, columns_of_thread(kernel, sums), target.has_feature(Target::CUDA), tiles);
    std::set<const KernelOutput *> done;
    for (const ColumnSums &sums : stages.sums) {
        const Func &total = sums.total;
        const KernelOutput *reader = only_reader(kernel, total);
        if (!reader || total.args().size() > most_tile_loops) {
            keep(total, tiles);
            continue;
        }
        if (total.num_update_definitions() > 0) read_ahead(total, 0);
        if (done.insert(reader).second) {
            schedule_elements_with(kernel, *reader, total, tiles);
        } else {
            compute_one(total, reader->func);
        }
    }
    for (const KernelOutput &output : kernel.outputs) {
        if (!output.func.args().empty() && !done.contains(&output)) schedule_elements(kernel, output, tiles);
    }
    schedule_totals(kernel, stages.whole);
}

} // namespace scalide::gpu
