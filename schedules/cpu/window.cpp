#include "lower/halide/amx_tiles.h"
#include "schedules/cpu/kinds.h"
#include "schedules/cpu/loops.h"

// window: one pass over the result, like a map. Reductions of large windows, and the selection of an element from each window, are computed
// first. Convolutions: a register tile of the product over all terms of its sums. Around it are loops over tiles, panels of lanes, and the
// other axes of the result. Tiles:
//   task     elements (convolutions: products) of a parallel task
//   lanes    elements in a vector (all but convolutions)
//   rows     most rows of a register tile (convolutions); tiles of AMX have 32
//   weights  most weights that stay in the second-level cache (convolutions)
namespace scalide {
namespace {
using namespace Halide;

/// Computes a whole stage, vectorized along its first argument and in parallel along its last two.
void schedule_whole(Func func, int lanes) {
    func.compute_root();
    const std::vector<Var> args = func.args();
    for (int i = 0; i <= func.num_update_definitions(); i++) {
        if (args.empty()) {
            continue;
        }
        Stage nest = i == 0 ? Stage(func) : func.update(i - 1);
        if (i > 0) {
            std::vector<VarOrRVar> order = {args[0]};
            const std::vector<RVar> domain = func.rvars(i - 1);
            order.insert(order.end(), domain.begin(), domain.end());
            order.insert(order.end(), args.begin() + 1, args.end());
            nest.reorder(order);
        }
        nest.vectorize(args[0], lanes, TailStrategy::Predicate);
        if (args.size() > 1) {
            Var task("task");
            const bool is_fused = args.size() > 2;
            if (is_fused) {
                nest.fuse(args[args.size() - 2], args.back(), task);
            }
            nest.parallel(is_fused ? task : args.back());
        }
    }
}

constexpr int rows_of_task = 64; ///< rows of weights that one task writes into panels

/// Returns the rows of a register tile, at most `most`, such that tiles cover the extent with the least work. Rows beyond the extent are
/// computed too, and each tile reads the weights again, which costs as much as one more row.
int rows_of_tile(const Extent &extent, int most) {
    if (!extent.is_static()) return most;
    const auto work = [&](int rows) { return (extent.value() + rows - 1) / rows * (rows + 1); };
    int best = most;
    for (int rows = most - 1; rows > 0; rows--)
        if (work(rows) < work(best)) best = rows;
    return best;
}

class ConvolutionSchedule {
public:
    ConvolutionSchedule(LoweredKernel &kernel, const Tiles &tiles, const Target &target)
        : kernel_(kernel), stages_(std::get<ConvolutionStages>(kernel.stages)), tiles_(tiles), lanes_(target.natural_vector_size<float>()),
          width_(stages_.width), rows_(stages_.in_tiles ? amx_side : rows_of_tile(stages_.tile, tiles.at("rows"))),
          output_(kernel.outputs[0].func) {}

    void apply() {
        schedule_result();
        schedule_product();
        if (stages_.lhs.defined()) schedule_whole(stages_.lhs, lanes_);
        if (stages_.has_panels) {
            if (stages_.rhs.defined()) schedule_panels();
        } else if (stages_.rhs.defined()) {
            schedule_whole(stages_.rhs, lanes_);
        }
    }

private:
    Expr extent(const Extent &extent) const { return to_expr(extent, kernel_); }
    bool is_grouped() const { return stages_.group > 1; }

    void schedule_result() {
        const std::vector<Expr> extents = bound_loops(kernel_, kernel_.outputs[0]);
        const std::vector<Var> args = output_.args();
        const int lane_dimension = stages_.lane_dimension, tile_dimension = stages_.tile_dimension;
        const bool divides = stages_.lanes.divide(width_).has_value();
        Stage nest = loop_nest(output_);
        nest.split(args[lane_dimension], panel_, column_, width_, divides ? TailStrategy::GuardWithIf : TailStrategy::Predicate);
        nest.split(column_, vector_, lane_, lanes_);
        nest.split(args[tile_dimension], tile_, row_, rows_, TailStrategy::GuardWithIf);
        const std::vector<Var> outer = outer_loops(args);
        std::vector<VarOrRVar> order = {lane_, vector_, row_, tile_};
        order.insert(order.end(), outer.begin(), outer.end());
        Expr count = (extent(stages_.lanes) + width_ - 1) / width_;
        for (int d = 0; d < int(args.size()); d++)
            if (d != lane_dimension && d != tile_dimension) count = count * extents[d];
        nest.reorder(order).vectorize(lane_).unroll(vector_).never_partition_all();
        if (!stages_.in_tiles) nest.unroll(row_); // to keep the product in registers
        parallelize(nest, *fuse_loops(nest, outer), count, extent(stages_.tile) * width_ * extent(stages_.terms), tiles_.at("task"));
    }

    /// Returns the loops around the tiles of one axis, innermost first. Weights that fit in a second-level cache are read again for each
    /// line of an image. Otherwise a panel of them stays there for all lines of an image. With a symbolic number of panels, Halide 21
    /// does not see that one iteration of the fused loop computes one line.
    std::vector<Var> outer_loops(const std::vector<Var> &args) const {
        std::vector<Var> lines, images;
        for (int d = 0; d < int(args.size()); d++) {
            if (d != stages_.lane_dimension && d != stages_.tile_dimension)
                (d == stages_.image_dimension ? images : lines).push_back(args[d]);
        }
        const Extent weights = stages_.terms * stages_.lanes;
        const bool panel_stays = stages_.has_panels && weights.is_static() && weights.value() > tiles_.at("weights");
        std::vector<Var> loops = lines;
        loops.insert(panel_stays ? loops.end() : loops.begin(), panel_);
        loops.insert(loops.end(), images.begin(), images.end());
        return loops;
    }

    /// Reads whole rows of the weights and writes each row into all panels.
    void schedule_panels() {
        Func panels = stages_.rhs;
        const std::vector<Var> args = panels.args();
        const size_t column = is_grouped(); // after the items of a group
        Var term = args[column + 1], task("task");
        std::vector<VarOrRVar> order = {args[column], args.back()};
        order.insert(order.end(), args.begin() + column + 1, args.end() - 1);
        panels.compute_root().bound(args[column], 0, width_).reorder(order).vectorize(args[column], lanes_);
        if (is_grouped()) panels.bound(args[0], 0, stages_.group).reorder(args[0], args[column]).unroll(args[0]);
        for (size_t i = column + 2; i + 1 < args.size(); i++) panels.fuse(term, args[i], term);
        panels.split(term, task, term, rows_of_task, TailStrategy::GuardWithIf).parallel(task).never_partition_all();
    }

    /// Schedules a tile of the last block. Earlier blocks are added to a tile in memory.
    void schedule_product() {
        const LoopLevel tile(output_, tile_);
        const SumStages &product = stages_.product;
        schedule_block(product.last, tile);
        if (!product.before.defined()) return;
        schedule_tile(product.before, tile, MemoryType::Stack, false);
        schedule_block(product.block, LoopLevel(product.before, product.before.rvars()[0]));
    }

    /// Schedules the sums of one block: in registers, or in memory if tiles of AMX compute them.
    void schedule_block(Func block, const LoopLevel &level) {
        if (!stages_.in_tiles) return schedule_tile(block, level, MemoryType::Register, is_grouped());
        place_tile(block, level, MemoryType::Stack);
        block.bound(block.args()[1], 0, rows_).update().never_partition_all();
    }

    void place_tile(Func tile, const LoopLevel &level, MemoryType memory) {
        const std::vector<Var> args = tile.args();
        tile.compute_at(level).bound(args[0], 0, width_).bound_extent(args[1], rows_).store_in(memory);
        for (size_t i = 2; i < args.size(); i++) tile.bound_extent(args[i], 1);
    }

    /// `sums_groups`: the innermost axis of the sum is the items of a group, which one instruction multiplies.
    void schedule_tile(Func product, const LoopLevel &level, MemoryType memory, bool sums_groups) {
        const std::vector<Var> args = product.args();
        place_tile(product, level, memory);
        product.vectorize(args[0], lanes_).unroll(args[0]);
        if (!stages_.in_tiles) product.unroll(args[1]);
        Stage sum = product.update();
        const std::vector<RVar> terms = product.rvars();
        std::vector<VarOrRVar> order = {lane_, vector_, args[1]};
        if (sums_groups) order.insert(order.begin(), terms[0]);
        order.insert(order.end(), terms.begin() + sums_groups, terms.end());
        sum.split(args[0], vector_, lane_, lanes_).reorder(order);
        if (sums_groups) sum.atomic().vectorize(terms[0]);
        sum.vectorize(lane_).unroll(vector_).never_partition_all();
        if (!stages_.in_tiles) sum.unroll(args[1]);
    }

    LoweredKernel &kernel_;
    const ConvolutionStages &stages_;
    const Tiles &tiles_;
    int lanes_, width_, rows_;
    Func output_;
    Var panel_{"panel"}, column_{"column"}, vector_{"vector"}, lane_{"lane"}, tile_{"tile"}, row_{"row"};
};

} // namespace

void schedule_window(LoweredKernel &kernel, const Tiles &tiles, const Target &target) {
    if (std::holds_alternative<ConvolutionStages>(kernel.stages)) {
        ConvolutionSchedule(kernel, tiles, target).apply();
        return;
    }
    const auto &stages = std::get<WindowStages>(kernel.stages);
    for (const Func &stage : {stages.winner, stages.fold}) {
        if (stage.defined()) schedule_whole(stage, tiles.at("lanes"));
    }
    for (const KernelOutput &output : kernel.outputs) {
        schedule_elements(kernel, output, tiles);
    }
}

} // namespace scalide
