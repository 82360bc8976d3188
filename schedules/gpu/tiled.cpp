#include "schedules/gpu/kinds.h"
#include "schedules/gpu/loops.h"
#include "schedules/gpu/tile_loops.h"
#include <algorithm>

// tiled: a block of threads computes a tile in shared memory, writes it in the memory order of each output, and reduces it. Then one block
// reduces the results of the tiles. If extents are known to be multiples, adjacent elements are read, and written in each output, by one
// access. In shared memory, a thread reads single elements of a column. Tiles:
//   threads  threads of a block
namespace scalide::gpu {
namespace {
using namespace Halide;

class TiledSchedule : TileLoops {
public:
    TiledSchedule(LoweredKernel &kernel, const Tiles &tiles, bool is_cuda)
        : TileLoops(kernel), threads_(tiles.at("threads")), is_cuda_(is_cuda) {}

    void apply() {
        align_arrays(kernel_);
        for (const KernelOutput &output : kernel_.outputs) {
            if (output.func.args().empty()) continue;
            bound_loops(kernel_, output);
            write(output.func);
        }
        make_tile();
        if (!stages_.of_tile.fold.empty()) reduce_tiles();
        schedule_totals(kernel_, stages_.whole);
    }

private:
    /// Distributes a tile over threads; `line` is contiguous in memory.
    void spread_tile(Stage nest, const Var &line, const Var &across, int side) const {
        Var step("step"), row("row");
        nest.split(across, step, row, threads_ / side).reorder({step, line, row}).gpu_threads(line, row).unroll(step);
    }
    void spread_line(Stage nest, const Var &line) const {
        Var step("step");
        nest.split(line, step, line, threads_).reorder({step, line}).gpu_threads(line).unroll(step);
    }

    /// Turns the loop along memory into groups of adjacent elements, which a thread accesses together. Returns the size of a group.
    int take_together(Stage nest, const Var &line) const {
        const int count = line.name() == axes_[0].name() ? stages_.together_x : stages_.together_y;
        if (count == 1) return 1;
        Var neighbour("neighbour");
        nest.split(line, line, neighbour, count);
        is_cuda_ ? nest.vectorize(neighbour) : nest.unroll(neighbour);
        return count;
    }

    /// Writes an output. All outputs share one loop over tiles.
    void write(Func output) {
        Stage nest = output;
        std::vector<Var> blocks = axes_;
        blocks[0] = Var("tile_x");
        const Var x = axes_[0], y = axes_[across_], line = output.args()[0];
        const int together = take_together(nest, line), together_x = line.name() == x.name() ? together : 1;
        if (across_ == 0) {
            nest.split(x, blocks[0], x, side_ * side_ / together, TailStrategy::GuardWithIf);
        } else {
            blocks[across_] = Var("tile_y");
            nest.split(x, blocks[0], x, side_ / together_x, TailStrategy::GuardWithIf);
            nest.split(y, blocks[across_], y, side_ * together_x / together, TailStrategy::GuardWithIf);
            blocks = in_order(blocks);
            std::vector<VarOrRVar> order = {x, y};
            order.insert(order.end(), blocks.begin(), blocks.end());
            nest.reorder(order);
        }
        join(output, blocks);
        if (across_ == 0) {
            spread_line(nest, x);
        } else if (line.name() == x.name()) {
            spread_tile(nest, x, y, side_ / together);
        } else {
            spread_tile(nest, y, x, side_ / together);
        }
    }

    /// Adds one loop over blocks for each axis. If several outputs shared a fused loop, Halide would not know where a tile begins.
    void join(Func func, const std::vector<Var> &blocks) {
        for (const Var &block : blocks) func.gpu_blocks(block);
        run_together(func, blocks[0]);
    }

    /// Computes the tile. Its lines are one word longer than its side, so that access along either direction has no bank conflicts.
    void make_tile() {
        tile_.compute_at(block_);
        for (size_t d = 0; d < axes_.size(); d++) tile_.bound_extent(axes_[d], extent_of_tile(d));
        const int together = take_together(tile_, axes_[0]);
        if (across_ == 0) return spread_line(tile_, axes_[0]);
        int smallest = 4;
        for (const Halide::Type &type : tile_.types()) smallest = std::min(smallest, type.bytes());
        tile_.align_storage(axes_[0], side_ + 4 / smallest);
        std::vector<VarOrRVar> order = {axes_[0], axes_[across_]};
        for (size_t d = 1; d < axes_.size(); d++)
            if (d != across_) order.emplace_back(axes_[d]);
        tile_.reorder(order);
        spread_tile(tile_, axes_[0], axes_[across_], side_ / together);
    }

    void reduce_tiles() {
        constexpr int lanes_of_fold = 16; // lower/rows/reduction.cpp
        Func partial = stages_.of_tile.partial[0], lane = stages_.of_tile.lane[0], fold = stages_.of_tile.fold[0];
        // Halide cannot prove these bounds if outputs share the loops. A thread has one lane.
        for (const auto &[stage, lanes] : {std::pair(partial, 1), std::pair(partial.in(), side_), std::pair(lane, lanes_of_fold)}) {
            Func bounded = stage;
            bounded.bound_extent(bounded.args()[0], lanes);
            for (size_t i = 1; i < bounded.args().size(); i++) bounded.bound_extent(bounded.args()[i], 1);
        }
        reduce_in_block(partial, lane, block_);
        fold.compute_root();
        join(fold, fold.args());
    }

    int threads_;
    bool is_cuda_;
};

} // namespace

void schedule_tiled(LoweredKernel &kernel, const Tiles &tiles, const Target &target) {
    TiledSchedule(kernel, tiles, target.has_feature(Target::CUDA)).apply();
}

} // namespace scalide::gpu
