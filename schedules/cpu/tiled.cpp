#include "schedules/cpu/kinds.h"
#include "schedules/cpu/loops.h"
#include "schedules/tables/tile_loops.h"
#include <algorithm>

// tiled: a task computes tiles one after the other, writes each in the memory order of each output, and reduces it. No pass forms such
// kernels for CPUs, because there the result of a map is still in a cache when it is read again. This schedule exists for comparison.
// Tiles:
//   lanes  elements in a vector
namespace scalide {
namespace {
using namespace Halide;

class TiledSchedule : TileLoops {
public:
    TiledSchedule(LoweredKernel &kernel, const Tiles &tiles) : TileLoops(kernel), lanes_(tiles.at("lanes")) {}

    void apply() {
        for (const KernelOutput &output : kernel_.outputs) {
            if (output.func.args().empty()) continue;
            bound_loops(kernel_, output);
            write(output.func);
        }
        tile_.compute_at(block_);
        for (size_t d = 0; d < axes_.size(); d++) tile_.bound_extent(axes_[d], extent_of_tile(d));
        tile_.vectorize(axes_[0], lanes_);
        if (!stages_.of_tile.fold.empty()) reduce_tiles();
        schedule_totals(stages_.whole);
    }

private:
    void write(Func output) {
        Stage nest = output;
        std::vector<Var> blocks = axes_;
        std::vector<VarOrRVar> order;
        for (const Var &axis : output.args()) {
            const size_t d = size_t(std::ranges::find(axes_, axis.name(), &Var::name) - axes_.begin());
            if (d != 0 && d != across_) continue;
            blocks[d] = Var(d == 0 ? "tile_x" : "tile_y");
            nest.split(axis, blocks[d], axis, extent_of_tile(d), TailStrategy::GuardWithIf);
            order.emplace_back(axis);
        }
        blocks = in_order(blocks);
        order.insert(order.end(), blocks.begin(), blocks.end());
        nest.reorder(order);
        join(output, blocks);
        nest.vectorize(output.args()[0], lanes_, TailStrategy::GuardWithIf);
    }

    /// A task has all tiles along the innermost axis.
    void join(Func func, const std::vector<Var> &blocks) {
        func.parallel(blocks.back());
        run_together(func, blocks[0]);
    }

    void reduce_tiles() {
        Func partial = stages_.of_tile.partial[0], lane = stages_.of_tile.lane[0], fold = stages_.of_tile.fold[0];
        lane.compute_at(block_);
        partial.compute_at(block_);
        vectorize_partial(partial);
        vector_lanes(stages_.of_tile);
        fold.compute_root();
        join(fold, fold.args());
    }

    int lanes_;
};

} // namespace

void schedule_tiled(LoweredKernel &kernel, const Tiles &tiles, const Target &) { TiledSchedule(kernel, tiles).apply(); }

} // namespace scalide
