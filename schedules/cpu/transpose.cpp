#include "schedules/cpu/kinds.h"
#include "schedules/cpu/loops.h"

// transpose: square tiles. A tile is read in whole vectors that are contiguous in the argument, then transposed in registers, decoded and
// encoded. It is written in whole vectors that are contiguous in the result. A kernel that turns out to be no transposition is scheduled as
// a map. Tiles:
//   task   elements of a parallel task
//   lanes  elements in a vector
//   side   side of a tile
namespace scalide {
namespace {
using namespace Halide;

class TransposeSchedule {
public:
    TransposeSchedule(LoweredKernel &kernel, const Tiles &tiles)
        : stages_(std::get<TransposeStages>(kernel.stages)), tiles_(tiles), output_(kernel.outputs[0].func),
          extents_(bound_loops(kernel, kernel.outputs[0])), across_(stages_.across), x_(output_.args()[0]), y_(output_.args()[across_]) {}

    void apply() {
        Stage nest = loop_nest(output_);
        if (output_.has_update_definition()) {
            // A tile that is shifted inwards would update elements twice.
            in_tasks(nest, TailStrategy::GuardWithIf);
        } else {
            // The last tile of a row is shifted inwards, so that every tile is whole and nothing outside is read. An array smaller than a
            // tile is computed element by element.
            in_tasks(output_.specialize(extents_[0] >= side() && extents_[across_] >= side()), TailStrategy::ShiftInwards);
            tile(nest, TailStrategy::GuardWithIf);
        }
        Func rows = stages_.rows, block = stages_.block;
        block.compute_at(output_, tasks_).store_in(MemoryType::Stack);
        block.vectorize(x_, side(), TailStrategy::GuardWithIf).vectorize(y_, side(), TailStrategy::GuardWithIf);
        rows.compute_at(output_, tasks_).store_in(MemoryType::Stack).reorder_storage(y_, x_).reorder(y_, x_);
        rows.vectorize(y_, side(), TailStrategy::GuardWithIf);
    }

private:
    int side() const { return tiles_.at("side"); }

    void in_tasks(Stage nest, TailStrategy tail) {
        tile(nest, tail);
        nest.vectorize(x_).unroll(y_);
        parallelize(nest, tasks_, count(), side() * side(), tiles_.at("task"));
    }

    void tile(Stage nest, TailStrategy tail) {
        Var tile_x("tile_x"), tile_y("tile_y");
        nest.split(x_, tile_x, x_, side(), tail).split(y_, tile_y, y_, side(), tail);
        std::vector<Var> outer = {tile_y, tile_x};
        for (int d = 1; d < int(extents_.size()); d++) {
            if (d != across_) {
                outer.push_back(output_.args()[d]);
            }
        }
        std::vector<VarOrRVar> order = {x_, y_};
        order.insert(order.end(), outer.begin(), outer.end());
        nest.reorder(order);
        nest.rename(*fuse_loops(nest, outer), tasks_);
    }

    /// Returns the number of tiles.
    Expr count() const {
        Expr all = 1;
        for (int d = 0; d < int(extents_.size()); d++) {
            all = all * (d == 0 || d == across_ ? (extents_[d] + side() - 1) / side() : extents_[d]);
        }
        return all;
    }

    const TransposeStages &stages_;
    const Tiles &tiles_;
    Func output_;
    std::vector<Expr> extents_;
    int across_;
    Var x_, y_, tasks_{"tile"};
};

} // namespace

void schedule_transpose(LoweredKernel &kernel, const Tiles &tiles, const Target &) {
    if (std::get<TransposeStages>(kernel.stages).across == 0) {
        for (const KernelOutput &output : kernel.outputs) {
            schedule_elements(kernel, output, tiles);
        }
    } else {
        TransposeSchedule(kernel, tiles).apply();
    }
}

} // namespace scalide
