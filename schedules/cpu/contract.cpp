#include "lower/halide/amx_tiles.h"
#include "schedules/cpu/kinds.h"
#include "schedules/cpu/loops.h"

// Loops of a contract kernel, outermost first: tasks (blocks of columns or of rows, of all batches), the other blocks, panels of columns,
// blocks of tiles, tiles of rows. Inside, one register tile of the product is computed over all k. Every task packs the panels of the right
// operand that it needs, so there is one parallel region and no barrier. Within a task, the panels of a block of rows, or the blocks of
// tiles of a panel, are an inner parallel loop. A thread whose tasks are done takes over some of them. This reduced the wait at the end of
// a region from 7 to 10 % of the time of the region to 1 %. The 784-512-512-10 step takes 2.36 ms instead of 2.42 ms in bf16, and 2.12 ms
// instead of 2.17 ms in f32 (two cores, 2026-11-21). A left operand that is read directly is never copied: a tile reads `rows` streams of
// scalars. Tiles:
//   rows           most rows of a register tile
//   block_columns  columns of a block, rounded to panels
//   block_rows     rows of a block if blocks of rows are the tasks (results with few columns); 0: tasks are blocks of columns
// Products by tiles of AMX compute 32 rows in memory. Their tasks are blocks of tiles by blocks of panels, which stay in the second cache:
//   block_tiles    most tiles of rows in a block
//   block_panels   panels of columns in a block
//
// Guards are masks, not branches: an `if` around a vector would turn it into scalars, and partitioned loops would copy the whole kernel.

namespace scalide {
namespace {
using namespace Halide;

/// Returns all definitions of a Func.
std::vector<Stage> definitions(Func func) {
    std::vector<Stage> stages = {func};
    for (int i = 0; i < func.num_update_definitions(); i++) {
        stages.push_back(func.update(i));
    }
    return stages;
}

/// Returns the rows of a register tile: at most `most`, and as few as possible for the same number of tiles. Eight rows are two tiles of
/// four, not two of six, whose last rows would be computed and thrown away.
int tile_rows(const Extent &rows, int most) {
    if (!rows.is_static() || rows.value() == 0) return most;
    const int64_t count = (rows.value() + most - 1) / most;
    return int((rows.value() + count - 1) / count);
}

constexpr int depth_unroll = 2; ///< steps along k: saves 7 % of the 784-512-512-10 step in f32; 4 are no better
constexpr int tiles_shared = 4; ///< tiles of a panel that an idle thread may take

/// The same for a sum of several blocks (lower/rows/blocked_sum.h). These tiles together are computed block by block, so that they read
/// the block of the panel from the second-level cache. If each tile ran over all blocks, it would read the whole panel. 512 x 2048 over
/// 8,192 (the gradient of a weight) takes 57 ms instead of 106 (Xeon, AVX-512, two cores, 2026-11-28).
constexpr int tiles_of_blocks = 32;
constexpr int lhs_task = 32; ///< rows of the left operand that one task decodes

class ContractSchedule {
public:
    ContractSchedule(LoweredKernel &kernel, const Tiles &tiles, const Target &target)
        : kernel_(kernel), stages_(std::get<ContractStages>(kernel.stages)), packed_(stages_.packed), tiles_(tiles),
          lanes_(target.natural_vector_size<float>()), width_(packed_.width), group_(packed_.group), is_grouped_(group_ > 1),
          in_tiles_(packed_.in_tiles), rows_(in_tiles_ ? amx_side : tile_rows(stages_.rows, tiles.at("rows"))),
          rows_parallel_(!in_tiles_ && tiles.at("block_rows") != 0), output_(kernel.outputs[0].func) {}

    void apply() {
        for (const KernelOutput &output : kernel_.outputs) {
            bound_loops(kernel_, output);
        }
        schedule_result();
        schedule_product();
        if (packed_.lhs.defined()) in_tiles_ ? schedule_lhs_tiles() : schedule_lhs();
        if (packed_.rhs.defined()) schedule_rhs();
        if (packed_.rhs_factors.defined()) schedule_rhs_factors();
        if (packed_.column_sums.defined()) schedule_column_sums();
        schedule_sides();
        if (has_folds()) {
            schedule_folds();
        }
    }

private:
    bool has_folds() const { return stages_.folds.partials.defined(); }
    bool sums_by_blocks() const { return stages_.product.before.defined() && !has_folds(); }
    bool tasks_are_batches() const { return has_folds() && output_.args().size() > 2; }
    Expr extent(const Extent &extent) const { return to_expr(extent, kernel_); }

    LoopLevel at(const Var &loop) const { return LoopLevel(output_, loop); }

    void schedule_result() {
        std::vector<Var> args = output_.args();
        Stage nest = loop_nest(output_);
        split_panels(nest, args[0], width_);
        nest.split(column_, vector_, lane_, lanes_);
        nest_blocks(nest, {lane_, vector_}, {args.begin() + 1, args.end()});
        nest.vectorize(lane_).unroll(vector_).never_partition_all();
        if (!in_tiles_) nest.unroll(row_); // to keep the product in registers
    }

    /// Splits `x`, which counts elements; a panel has `width` of them. Panels are split off first, then blocks of panels. One condition on
    /// the panel then guards everything that is computed for it, and Halide knows that this is one panel.
    void split_panels(Stage nest, const Var &x, int width) {
        const bool divides = width == 1 || stages_.columns.divide(width).has_value();
        nest.split(x, panel_, column_, width, divides ? TailStrategy::GuardWithIf : TailStrategy::Predicate);
        nest.split(panel_, columns_block_, panel_, panels_of_block(), TailStrategy::GuardWithIf);
    }

    int panels_of_block() const { return in_tiles_ ? tiles_.at("block_panels") : std::max(1, tiles_.at("block_columns") / width_); }
    bool has_one_block_of_panels() const { return stages_.columns.is_static() && stages_.columns.value() <= panels_of_block() * width_; }
    bool has_one_block_of_tiles() const { return stages_.rows.is_static() && stages_.rows.value() <= tiles_.at("block_tiles") * rows_; }

    /// Returns the size of the parts if `count` is divided into as few equal parts of at most `most` as possible.
    static Expr equal_parts(const Expr &count, int most) {
        const Expr parts = max(1, (count + most - 1) / most);
        return Internal::simplify(max(1, (count + parts - 1) / parts));
    }

    /// Returns the tiles in a block of rows. The guard of a tile that does not exist masks its stores, but not the product before them. So
    /// blocks have equal sizes: 4 rows in a block of 64 took 16 times as long. With reductions of the result in the same loops, Halide 21
    /// fails ("repeated name") if the last block is incomplete, so that blocks keep their size there.
    Expr tiles_of_block() const { return equal_parts(all_tiles(), tiles_.at("block_rows") / rows_); }
    Expr all_tiles() const { return (extent(stages_.rows) + rows_ - 1) / rows_; }
    int tiles_together() const { return sums_by_blocks() ? tiles_of_blocks : tiles_shared; }

    /// Adds the loops around a row of a panel. `outer` is the rows and, if there is one, the batch. Loops that reductions share cannot be
    /// fused, because Halide would lose track of the block. Batches are the tasks in that case.
    void nest_blocks(Stage nest, std::vector<VarOrRVar> order, const std::vector<Var> &outer) {
        if (in_tiles_) return nest_tiles(nest, std::move(order), outer);
        if (rows_parallel_) {
            const Expr tiles = tiles_of_block();
            const Expr rows = has_folds() ? Expr(tiles_.at("block_rows")) : Internal::simplify(tiles * rows_);
            nest.split(outer[0], rows_block_, row_, rows, TailStrategy::GuardWithIf);
            nest.split(row_, tile_, row_, rows_, TailStrategy::GuardWithIf);
            nest.split(tile_, tiles_block_, tile_, has_folds() ? Expr(tiles_shared) : equal_parts(tiles, tiles_together()),
                       TailStrategy::GuardWithIf);
        } else {
            nest.split(outer[0], tile_, row_, rows_, TailStrategy::GuardWithIf);
            nest.split(tile_, tiles_block_, tile_, sums_by_blocks() ? equal_parts(all_tiles(), tiles_together()) : Expr(tiles_shared),
                       TailStrategy::GuardWithIf);
        }
        order.insert(order.end(), {row_, tile_, tiles_block_, panel_, columns_block_});
        nest.parallel(rows_parallel_ ? panel_ : tiles_block_);
        Var tasks = columns_block_;
        if (rows_parallel_) {
            order.emplace_back(rows_block_);
            tasks = rows_block_;
        }
        order.insert(order.end(), outer.begin() + 1, outer.end());
        nest.reorder(order);
        if (tasks_are_batches()) {
            tasks = outer[1];
        } else if (outer.size() > 1) {
            nest.fuse(tasks, outer[1], task_);
            tasks = task_;
        }
        nest.parallel(tasks);
        tasks_ = tasks;
    }

    /// Does the same for products by tiles. All panels of a block read the same tiles of rows.
    void nest_tiles(Stage nest, std::vector<VarOrRVar> order, const std::vector<Var> &outer) {
        nest.split(outer[0], tile_, row_, rows_, TailStrategy::GuardWithIf);
        nest.split(tile_, tiles_block_, tile_, equal_parts(all_tiles(), tiles_.at("block_tiles")), TailStrategy::GuardWithIf);
        order.insert(order.end(), {row_, tile_, panel_, columns_block_, tiles_block_});
        order.insert(order.end(), outer.begin() + 1, outer.end());
        nest.reorder(order);
        if (has_folds()) {
            tasks_ = tasks_are_batches() ? outer[1] : tiles_block_;
            nest.parallel(tasks_).parallel(columns_block_);
            return;
        }
        nest.fuse(columns_block_, tiles_block_, task_);
        for (size_t i = 1; i < outer.size(); i++) nest.fuse(task_, outer[i], task_);
        nest.parallel(task_);
        tasks_ = task_;
    }

    /// A stage that is computed for one panel of one batch, or for one row of it, has extent 1 there. Halide sees this only through minima.
    static void bound_to_one(Func func, const std::vector<int> &dims) {
        for (int dim : dims) {
            func.bound_extent(func.args()[dim], 1);
        }
    }

    /// Schedules the tile of the last block. Earlier blocks are added to a tile in memory.
    void schedule_product() {
        schedule_block(stages_.product.last, at(tile_));
        if (!stages_.product.before.defined()) return;
        sums_by_blocks() && !in_tiles_ ? schedule_blocks_of_tiles() : schedule_blocks_of_tile();
    }

    /// Schedules the sums of one block: in registers, or in memory if tiles of AMX compute them.
    void schedule_block(Func block, const LoopLevel &level) {
        if (!in_tiles_) {
            start_tile(block, level, MemoryType::Register);
            return schedule_terms(block);
        }
        place_tile(block, level, MemoryType::Stack);
        block.bound(block.args()[1], 0, rows_).update().never_partition_all();
    }

    /// Each tile adds its blocks.
    void schedule_blocks_of_tile() {
        Func before = stages_.product.before;
        start_tile(before, at(tile_), MemoryType::Stack);
        const Var column = before.args()[0], row = before.args()[1];
        const RVar block = before.rvars()[0];
        Stage sum = before.update();
        sum.split(column, vector_, lane_, lanes_).reorder({lane_, vector_, row, block});
        sum.vectorize(lane_).unroll(vector_).never_partition_all();
        if (!in_tiles_) sum.unroll(row);
        schedule_block(stages_.product.block, LoopLevel(before, block));
    }

    /// All tiles of a block of tiles add one block after the other.
    void schedule_blocks_of_tiles() {
        Func before = stages_.product.before;
        const Var column = before.args()[0], row = before.args()[1], tile("tile_of_block");
        before.compute_at(at(tiles_block_)).bound(column, 0, width_);
        for (size_t i = 2; i < before.args().size(); i++) before.bound_extent(before.args()[i], 1);
        before.vectorize(column, lanes_).unroll(column);
        Stage sum = before.update();
        sum.split(row, tile, row, rows_, TailStrategy::RoundUp).split(column, vector_, lane_, lanes_);
        sum.reorder({lane_, vector_, row, tile, before.rvars()[0]});
        sum.vectorize(lane_).unroll(vector_).unroll(row).never_partition_all();
        schedule_block(stages_.product.block, LoopLevel(before, tile));
    }

    /// Sets where a tile is computed, and all of its bounds except those of rows.
    void place_tile(Func tile, const LoopLevel &level, MemoryType memory) {
        tile.compute_at(level).bound(tile.args()[0], 0, width_).store_in(memory);
        for (size_t i = 2; i < tile.args().size(); i++) tile.bound_extent(tile.args()[i], 1);
    }

    /// Schedules the initial zeros and sets the bounds of a tile.
    void start_tile(Func tile, const LoopLevel &level, MemoryType memory) {
        Var column = tile.args()[0], row = tile.args()[1];
        place_tile(tile, level, memory);
        tile.bound_extent(row, rows_).vectorize(column, lanes_).unroll(column).unroll(row);
    }

    void schedule_terms(Func product) {
        Var column = product.args()[0], row = product.args()[1];
        Stage sum = product.update();
        sum.split(column, vector_, lane_, lanes_);
        std::vector<RVar> r = product.rvars();
        if (is_grouped_) {
            sum.reorder({r[0], lane_, vector_, row, r[1]}).atomic().vectorize(r[0]).vectorize(lane_);
        } else {
            sum.split(r[0], depth_, step_, depth_unroll, TailStrategy::GuardWithIf);
            sum.reorder({lane_, vector_, row, step_, depth_}).vectorize(lane_).unroll(step_);
        }
        sum.unroll(vector_).unroll(row).never_partition_all();
        if (!is_grouped_) {
            sum.partition(depth_, Partition::Auto); // moves the guard of an odd depth out of the loop
        }
    }

    /// If tasks are blocks of rows, each decodes its own rows. Otherwise all threads together decode all rows first. The step
    /// 784-512-512-10 in bf16 takes 0.562 ms this way (EPYC Zen 5, two cores, 2026-11-23). If tasks decode their own rows where these are
    /// far apart along k, it takes 0.586 ms.
    void schedule_lhs() {
        Func lhs = packed_.lhs;
        if (packed_.lhs_block.defined()) return schedule_transposed_lhs();
        rows_parallel_ ? lhs.compute_at(at(tasks_)) : lhs.compute_root();
        const bool interleaved = packed_.lhs_rows.defined();
        Var x = lhs.args()[interleaved], outer = lhs.args()[1 + interleaved];
        const bool has_all_rows = !rows_parallel_ || tasks_are_batches();
        if (has_all_rows) { // without rows, there is no last row that tiles can repeat
            lhs.bound(lhs.args()[packed_.lhs_depth_contiguous || interleaved], 0, extent(stages_.rows));
        }
        if (interleaved) interleave_lhs(lhs, x, outer);
        for (Stage copy : definitions(lhs)) {
            copy.vectorize(x, 2 * lanes_, TailStrategy::Predicate).never_partition_all();
            if (!rows_parallel_) {
                copy.split(outer, task_, outer, lhs_task, TailStrategy::GuardWithIf).fuse(task_, lhs.args().back(), task_).parallel(task_);
            }
        }
    }

    /// All threads together decode all rows first. If all panels are in one block, each task decodes its own rows.
    void schedule_lhs_tiles() {
        Func lhs = packed_.lhs;
        const Var k = lhs.args()[0], row = lhs.args()[1], tile = lhs.args()[2], batch = lhs.args()[3];
        const bool is_own = has_one_block_of_panels() && !has_folds();
        is_own ? lhs.compute_at(at(tasks_)) : lhs.compute_root();
        lhs.bound(row, 0, rows_);
        if (packed_.lhs_block.defined()) {
            const LoopLevel block = split_transposed_lhs(Var("row_block"));
            transpose_at(block, packed_.lhs_block, packed_.lhs_words);
            Func rows = packed_.lhs_rows;
            rows.compute_at(block).store_in(MemoryType::Stack);
            copy_rows(rows);
        } else {
            lhs.vectorize(k, 2 * lanes_, TailStrategy::RoundUp).never_partition_all();
            if (packed_.lhs_rows.defined()) schedule_ragged_rows(LoopLevel(lhs, is_own ? tile : task_), LoopLevel(lhs, row));
        }
        if (!is_own) lhs.fuse(tile, batch, task_).parallel(task_);
    }

    /// Rows that end with zeros are stored once a tile, because their length may be symbolic, and computed one after the other.
    void schedule_ragged_rows(const LoopLevel &tile, const LoopLevel &row) {
        Func rows = packed_.lhs_rows;
        rows.store_at(tile).compute_at(row);
        for (Stage copy : {Stage(rows), rows.update(1)})
            copy.vectorize(rows.args()[0], 2 * lanes_, TailStrategy::Predicate).never_partition_all();
        const RVar beyond = rows.rvars(0)[0];
        rows.update(0).never_partition_all();
        if (stages_.depth.is_static()) rows.update(0).unroll(beyond); // a loop would become a call of memset
    }

    /// All threads together transpose all rows first.
    void schedule_transposed_lhs() {
        Func lhs = packed_.lhs;
        const Var row_block("row_block");
        const LoopLevel block = split_transposed_lhs(row_block);
        lhs.compute_root().fuse(row_block, lhs.args().back(), task_).parallel(task_);
        transpose_at(block, packed_.lhs_block, packed_.lhs_rows);
    }

    /// Splits the left operand into blocks of 16 by 16 (transpose_at). Returns the loop in which a block is transposed.
    LoopLevel split_transposed_lhs(const Var &row_block) {
        Func lhs = packed_.lhs;
        const Var k = lhs.args()[0], row = lhs.args()[1], k_block("k_block");
        lhs.split(k, k_block, k, lanes_, TailStrategy::RoundUp).split(row, row_block, row, lanes_, TailStrategy::RoundUp);
        std::vector<VarOrRVar> order = {k, row, k_block, row_block};
        for (size_t i = 2; i < lhs.args().size(); i++) order.emplace_back(lhs.args()[i]);
        lhs.reorder(order).vectorize(k).unroll(row).never_partition_all();
        return LoopLevel(lhs, k_block);
    }

    /// Does the same as interleave_groups, for rows of any length.
    void interleave_lhs(Func lhs, const Var &x, const Var &k) {
        Stage(lhs).reorder({lhs.args()[0], x, k}).unroll(lhs.args()[0]);
        Func rows = packed_.lhs_rows;
        rows.compute_at(lhs, k).vectorize(rows.args()[0], 2 * lanes_, TailStrategy::Predicate).never_partition_all();
    }

    void schedule_rhs() {
        Func rhs = packed_.rhs;
        const bool transposed = packed_.rhs_depth_contiguous;
        // All threads pack all panels first, if several blocks of tiles read them. They also do if the packing writes zeros: that is a call
        // of memset, after which LLVM configures tiles again.
        const bool is_first = in_tiles_ && (!has_one_block_of_tiles() || (transposed && !stages_.depth.divide(group_ * lanes_)));
        is_first ? rhs.compute_root() : rhs.compute_at(at(panel_));
        rhs.bound(rhs.args()[is_grouped_], 0, width_);
        if (is_first) {
            rhs.fuse(rhs.args()[3], rhs.args()[4], task_).parallel(task_);
        } else {
            bound_to_one(rhs, {2 + is_grouped_, 3 + is_grouped_});
        }
        if (is_grouped_) {
            transposed ? gather_groups(rhs) : interleave_groups(rhs);
        } else {
            transposed ? transpose_blocks(rhs) : copy_rows(rhs);
        }
    }

    void copy_rows(Func rows) {
        for (Stage copy : definitions(rows)) {
            copy.vectorize(rows.args()[0], lanes_).unroll(rows.args()[0]).never_partition_all();
        }
    }

    void schedule_rhs_factors() {
        Func factors = packed_.rhs_factors;
        factors.compute_at(at(panel_)).bound(factors.args()[0], 0, width_);
        bound_to_one(factors, {2, 3});
        copy_rows(factors);
    }

    void schedule_column_sums() {
        Func sums = packed_.column_sums, ones = packed_.ones;
        const Var column = sums.args()[0];
        sums.compute_at(at(panel_)).bound(column, 0, width_).vectorize(column, lanes_).unroll(column).store_in(MemoryType::Stack);
        bound_to_one(sums, {1, 2});
        const std::vector<RVar> r = sums.rvars();
        Stage sum = sums.update();
        sum.split(column, vector_, lane_, lanes_).reorder({r[0], lane_, vector_, r[1]}).atomic();
        sum.vectorize(r[0]).vectorize(lane_).unroll(vector_).never_partition_all();
        ones.compute_at(at(panel_)).bound(ones.args()[0], 0, group_).vectorize(ones.args()[0]).store_in(MemoryType::Stack);
    }

    /// Reads dense rows and writes one interleaved row. The group is unrolled, because a vectorized group would be inserted lane by lane.
    void interleave_groups(Func rhs) {
        Var item = rhs.args()[0], column = rhs.args()[1], k = rhs.args()[2];
        rhs.split(column, vector_, lane_, lanes_).reorder({item, lane_, vector_, k});
        rhs.vectorize(lane_).unroll(item).unroll(vector_).never_partition_all();
        Func rows = packed_.rhs_rows;
        rows.compute_at(rhs, k).store_in(MemoryType::Stack);
        copy_rows(rows);
    }

    void gather_groups(Func rhs) {
        Var item = rhs.args()[0], column = rhs.args()[1], k = rhs.args()[2], k_block("k_block");
        rhs.split(k, k_block, k, lanes_, TailStrategy::GuardWithIf).split(column, vector_, lane_, lanes_);
        rhs.reorder({item, lane_, k, vector_, k_block}).vectorize(item).vectorize(lane_).never_partition_all();
        Func rows = packed_.rhs_rows;
        rows.compute_at(rhs, vector_).bound_extent(rows.args()[0], group_ * lanes_).store_in(MemoryType::Stack);
        copy_rows(rows);
    }

    /// Transposes a block of 16 by 16 elements in registers: dense loads of rows, one shuffle, dense stores. The transposed block has
    /// storage of its own, because otherwise its stores would be a scatter.
    void transpose_at(const LoopLevel &level, Func block, Func rows) {
        block.compute_at(level).bound_extent(block.args()[1], lanes_).store_in(MemoryType::Stack);
        block.vectorize(block.args()[0], lanes_).vectorize(block.args()[1], lanes_);
        rows.compute_at(level).store_in(MemoryType::Stack);
        copy_rows(rows);
        for (Stage copy : definitions(rows)) {
            copy.unroll(rows.args()[1]);
        }
    }

    /// Blocks have 16 columns and 16 adjacent k.
    void transpose_blocks(Func rhs) {
        Var column = rhs.args()[0], k = rhs.args()[1], k_block("k_block");
        rhs.split(column, vector_, lane_, lanes_).split(k, k_block, k, lanes_, TailStrategy::GuardWithIf);
        rhs.reorder({lane_, k, vector_, k_block}).vectorize(lane_).unroll(k).never_partition_all();
        transpose_at(LoopLevel(rhs, vector_), packed_.rhs_block, packed_.rhs_rows);
    }

    /// Schedules per-axis sums and the outputs that follow them, in loops outside the loops of the result.
    void schedule_sides() {
        for (const SumStages &sum : stages_.sums) {
            Func last = sum.last, before = sum.before, block = sum.block;
            vectorize_columns(last.compute_root());
            if (!before.defined()) continue;
            vectorize_columns(before.compute_root());
            vectorize_columns(block.compute_at(LoopLevel(before, before.rvars()[0])).store_in(MemoryType::Stack));
        }
        for (size_t i = 1; i < kernel_.outputs.size(); i++) {
            vectorize_columns(kernel_.outputs[i].func);
        }
    }

    /// Vectorizes several vectors of columns at a time, with reduction variables around them.
    void vectorize_columns(Func func) {
        if (func.args().empty()) {
            return;
        }
        Var column = func.args()[0];
        for (int i = 0; i <= func.num_update_definitions(); i++) {
            Stage nest = i ? func.update(i - 1) : Stage(func);
            std::vector<VarOrRVar> order = {lane_, vector_};
            for (const RVar &r : i ? func.rvars(i - 1) : std::vector<RVar>()) {
                order.emplace_back(r);
            }
            order.emplace_back(column);
            nest.split(column, column, vector_, 4 * lanes_, TailStrategy::Predicate).split(vector_, vector_, lane_, lanes_);
            nest.reorder(order).vectorize(lane_).unroll(vector_).never_partition_all();
        }
    }

    /// The partial reduction of a row of a panel is computed where that row is stored. The rest follows after the result.
    void schedule_folds() {
        for (Func kept : stages_.folds.kept) schedule_kept(kept);
        Func terms = stages_.folds.terms;
        terms.compute_at(at(row_)).bound(column_, 0, width_).store_in(MemoryType::Stack);
        copy_rows(terms);
        bound_to_one(terms, {1, 2, 3});
        int width = width_;
        for (Func halves : stages_.folds.halves) {
            width /= 2;
            halves.compute_at(at(row_)).bound(column_, 0, width).store_in(MemoryType::Stack);
            halves.vectorize(column_, std::min(width, lanes_)).unroll(column_);
            bound_to_one(halves, {1, 2, 3});
        }
        schedule_partials(stages_.folds.partials);
        Func lanes = stages_.folds.lanes;
        lanes.compute_root().vectorize(lanes.args()[0], lanes_).update().vectorize(lanes.args()[0], lanes_).never_partition_all();
    }

    /// Copies each row when it is computed, in registers. If there is one panel, all rows of a tile are copied at once: Halide 21 fails
    /// otherwise, where the last tile is incomplete. The delayed FP8 step of the MLP takes 722 us instead of 699 if all do.
    void schedule_kept(Func kept) {
        const bool has_one_panel = stages_.columns.is_static() && stages_.columns.value() <= width_;
        const Var row = kept.args()[1];
        kept.compute_at(at(has_one_panel ? tile_ : row_)).bound(column_, 0, width_).bound_extent(row, has_one_panel ? rows_ : 1);
        kept.store_in(MemoryType::Stack);
        bound_to_one(kept, {2, 3});
        copy_rows(kept);
        for (Stage copy : definitions(kept)) {
            copy.unroll(row);
        }
    }

    /// Adds the loops of the result, without the loops within a row.
    void schedule_partials(Func partials) {
        std::vector<Var> args = partials.args();
        const Expr panels = (extent(stages_.columns) + width_ - 1) / width_;
        partials.compute_root().bound(args[1], 0, panels).bound(args[0], 0, extent(stages_.rows));
        Stage nest = partials;
        split_panels(nest, args[1], 1); // uses the same loop names; otherwise Halide would not fuse the loops
        std::vector<Var> outer = {args[0]};
        if (output_.args().size() > 2) {
            outer.push_back(args[2]);
        }
        nest_blocks(nest, {column_}, outer);
        nest.never_partition_all();
        if (!in_tiles_) nest.unroll(row_);
        nest.compute_with(LoopLevel(output_, row_, output_.num_update_definitions()));
    }

    LoweredKernel &kernel_;
    const ContractStages &stages_;
    const PackedStages &packed_;
    const Tiles &tiles_;
    int lanes_, width_, group_;
    bool is_grouped_, in_tiles_;
    int rows_; ///< of a register tile
    bool rows_parallel_;
    Func output_;
    Var column_{"column"}, vector_{"vector"}, lane_{"lane"}, panel_{"panel"}, row_{"row"}, tile_{"tile"};
    Var tiles_block_{"tiles_block"}, columns_block_{"columns_block"}, rows_block_{"rows_block"}, task_{"task"},
        tasks_; ///< parallel loop
    RVar depth_{"depth"}, step_{"step"};
};

} // namespace

void schedule_contract(LoweredKernel &kernel, const Tiles &tiles, const Target &target) { ContractSchedule(kernel, tiles, target).apply(); }

} // namespace scalide
