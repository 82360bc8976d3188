#include "schedules/gpu/kinds.h"
#include "schedules/gpu/loops.h"

// transpose: a block of threads transposes a square tile. It reads the argument contiguously into shared memory, and writes the result
// contiguously. A kernel that turns out to be no transposition is scheduled as a map. Tiles:
//   side     side of a tile: threads along memory
//   rows     rows of threads, each thread with side / rows elements
//   threads  threads of a block of a map
namespace scalide::gpu {
namespace {
using namespace Halide;

/// Distributes a tile over threads; `line` is contiguous in memory.
void spread_tile(Stage nest, const Var &line, const Var &across, int rows) {
    Var step("step"), thread("row");
    nest.split(across, step, thread, rows).reorder({step, line, thread}).gpu_threads(line, thread).unroll(step);
}

} // namespace

void schedule_transpose(LoweredKernel &kernel, const Tiles &tiles, const Target &) {
    const auto &stages = std::get<TransposeStages>(kernel.stages);
    const auto across = size_t(stages.across);
    if (across == 0) {
        for (const KernelOutput &output : kernel.outputs) schedule_elements(kernel, output, tiles);
        return;
    }
    const int side = tiles.at("side");
    Func output = kernel.outputs[0].func, block = stages.block;
    bound_loops(kernel, kernel.outputs[0]);
    std::vector<Var> blocks = output.args();
    const Var x = blocks[0], y = blocks[across];
    blocks[0] = Var("tile_x");
    blocks[across] = Var("tile_y");
    Stage nest = loop_nest(output);
    nest.split(x, blocks[0], x, side, TailStrategy::GuardWithIf).split(y, blocks[across], y, side, TailStrategy::GuardWithIf);
    std::vector<VarOrRVar> order = {x, y};
    order.insert(order.end(), blocks.begin(), blocks.end());
    nest.reorder(order);
    spread_blocks(nest, blocks);
    spread_tile(nest, x, y, tiles.at("rows"));
    // Each line has one more element, so that access along either direction has no bank conflicts. The loops cover the whole tile, because
    // the lowering clamps.
    block.compute_at(output, block_loop()).align_storage(x, side + 1).bound_extent(x, side).bound_extent(y, side).reorder({y, x});
    spread_tile(block, y, x, tiles.at("rows"));
}

} // namespace scalide::gpu
