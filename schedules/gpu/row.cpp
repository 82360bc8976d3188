#include "lower/rows/block_reduction.h"
#include "schedules/gpu/kinds.h"
#include "schedules/gpu/loops.h"
#include "schedules/gpu/row_warp.h"
#include <algorithm>
#include <optional>

// row: one warp for each row (row_warp.h), whose threads read up to 16 bytes at once on CUDA. A long row, or one of symbolic length, gets a
// block of threads, which keeps the stages of its row in shared memory. A short row gets one thread. On CUDA, all threads of a block reduce
// a row of static length from 256 columns on (lower/rows/block_reduction.h): the lowering chooses their number, and a thread has 16 bytes
// of adjacent elements. Tiles:
//   threads          threads of a block
//   columns          length from which a row is long: `threads_columns` threads compute its elements, several adjacent ones each if the
//                    length is a static multiple; sums have the lanes of the lowering
//   threads_columns  threads of a block for long rows
//   thread_row       longest row that one thread computes
//   warps            rows of a block if one warp computes each
//   rows             kernels with sums over rows (lower/rows/row_sums.h), on OpenCL: rows that a block computes at a
//                    time
//   shared_bytes     the same kernels: shared memory into which the stages of these rows must fit
// Kernels with sums over rows keep the sums of a thread's columns in registers during the loop over a block's rows
// (lower/rows/running_sums.h). A small launch then adds the sums of the blocks.
namespace scalide::gpu {
namespace {
using namespace Halide;

class RowSchedule {
public:
    RowSchedule(LoweredKernel &kernel, const Tiles &tiles, bool is_cuda)
        : kernel_(kernel), stages_(std::get<RowStages>(kernel.stages)), tiles_(tiles), is_cuda_(is_cuda), sums_rows_(sums_rows(kernel)),
          is_short_(is_known_short(tiles.at("thread_row"))) {}

    void apply() {
        together_ = rows_together();
        join_rows(kernel_, [this](const Func &func) { join(func); });
        for (const Func &stage : stages_.argument) place(stage, array_alignment / stage.type().bytes());
        for (const auto *stages : {&stages_.element, &stages_.scalar, &stages_.lanes.fold}) {
            for (const Func &stage : *stages) {
                if (!is_inlined(stage)) place(stage, four);
            }
        }
        if (sums_rows_) add_blocks(stages_.sums.lanes);
        for (size_t i = 0; i < stages_.lanes.partial.size(); i++) {
            if (by_block()) {
                bound_rows(stages_.lanes.block[i].warp, 1);
                reduce_by_block(stages_.lanes.partial[i], stages_.lanes.block[i], row());
                continue;
            }
            reduce(stages_.lanes.partial[i], stages_.lanes.lane[i], stages_.lanes.fold[i]);
        }
    }

private:
    /// True for the result of a reduction by a block that only values of a row read, not its elements. One thread computes such a value,
    /// so it combines the results of warps itself, and a barrier is saved.
    bool is_inlined(const Func &fold) const {
        const auto is_this = [&](const Func &func) { return func.name() == fold.name(); };
        if (!by_block() || std::ranges::none_of(stages_.lanes.fold, is_this)) return false;
        const auto reads = [&](const Func &func) {
            const bool has_elements = !func.args().empty() && func.args()[0].name() != rows_[0].name();
            return has_elements && Internal::find_direct_calls(func.function()).contains(fold.name());
        };
        const auto any = [&](const std::vector<Func> &funcs) { return std::ranges::any_of(funcs, reads); };
        const auto output_reads = [&](const KernelOutput &output) { return reads(output.func); };
        return !any(stages_.lanes.partial) && !any(stages_.element) && !any(stages_.stored) &&
               !(sums_rows_ && reads(stages_.sums.running)) && std::ranges::none_of(kernel_.outputs, output_reads);
    }

    /// Elements of one access to shared memory, without bank conflicts between threads. Four f32 are 16 bytes.
    static constexpr int four = 4;

    bool is_known_short(int most) const {
        const Extent &columns = stages_.columns;
        const bool few_axes = std::ranges::all_of(kernel_.outputs, [](const KernelOutput &output) {
            const std::vector<Var> args = output.func.args();
            return args.empty() || args.size() <= most_tile_loops + size_t(args[0].name() == Var("x").name());
        });
        return columns.is_static() && columns.value() <= most && few_axes;
    }

    /// Returns several rows if they fit into shared memory. They need as many barriers as one row.
    int rows_together() const {
        const Extent &rows = stages_.rows, &columns = stages_.columns;
        if (by_block() || !sums_rows_ || !rows.is_static() || !columns.is_static() || rows.value() == 0 ||
            rows.value() % stages_.sums.block_rows != 0)
            return 1;
        int64_t bytes = 0;
        for (const auto *stages : {&stages_.argument, &stages_.element}) {
            for (const Func &stage : *stages) bytes += columns.value() * stage.type().bytes();
        }
        const int together = tiles_.at("rows");
        return together * bytes <= tiles_.at("shared_bytes") ? together : 1;
    }

    /// The first Func leads; the others share its loop over rows.
    void join(Func func) {
        Stage nest = loop_nest(func);
        std::vector<Var> rows = func.args();
        std::optional<Var> columns;
        if (rows[0].name() == Var("x").name()) {
            columns = rows[0];
            rows.erase(rows.begin());
        }
        if (is_short_ && !rows.empty()) {
            if (columns) nest.unroll(*columns);
            spread_tiles(nest, rows, tiles_.at("threads"));
        } else {
            if (sums_rows_) split_rows(kernel_, func, *fuse_loops(nest, rows), block_loop(), together_);
            if (columns) spread_columns(nest, *columns, four);
            sums_rows_ ? void(nest.gpu_blocks(block_loop())) : spread_blocks(nest, rows);
        }
        if (leader_) {
            nest.compute_with(LoopLevel(*leader_, row_loop(), leader_->num_update_definitions()), LoopAlignStrategy::AlignStart);
        } else {
            leader_ = func;
            rows_ = rows;
        }
    }

    bool is_long() const { return stages_.columns.is_static() && stages_.columns.value() >= tiles_.at("columns"); }

    /// The block of threads that reduces a row; nullptr if rows are reduced in lanes.
    const BlockReduction *by_block() const {
        return stages_.lanes.block.empty() || stages_.lanes.block[0].warps == 0 ? nullptr : &stages_.lanes.block[0];
    }

    /// A thread computes up to `together` adjacent elements.
    void spread_columns(Stage nest, const Var &columns, int together) const {
        if (const BlockReduction *block = by_block()) {
            constexpr int most_elements = 32; // of a thread, all of which are read before the first is used
            return spread_line(nest, columns, *block, stages_.columns.value() <= int64_t(most_elements) * warp_threads * block->warps);
        }
        Var step("step"), neighbour("neighbour");
        const int64_t count = is_long() ? stages_.columns.value() : 1;
        while (count % together != 0) together /= 2;
        const int threads = tiles_.at(is_long() ? "threads_columns" : "threads");
        if (together > 1) {
            nest.split(columns, columns, neighbour, together);
            is_cuda_ ? nest.vectorize(neighbour) : nest.unroll(neighbour);
        }
        nest.split(columns, step, columns, threads, TailStrategy::GuardWithIf);
        if (together > 1)
            nest.reorder(neighbour, step, columns);
        else
            nest.reorder(step, columns);
        nest.gpu_threads(columns);
        if (is_long() && count <= int64_t(8) * threads * together) nest.unroll(step); // reads all elements before the first is used
    }

    /// The loop over rows. A single row has none.
    LoopLevel row() const { return {*leader_, row_loop()}; }
    Var row_loop() const { return is_short_ && !rows_.empty() ? thread_loop() : sums_rows_ ? block_row_loop() : block_loop(); }

    void place(Func stage, int together) {
        if (rows_.empty()) return place_single(stage);
        stage.compute_at(row());
        // Otherwise Halide takes stages outside of loops over lanes for registers of a warp.
        if (by_block()) stage.store_in(MemoryType::GPUShared);
        bound_rows(stage, together_);
        // Halide places arrays in shared memory one after the other, and assumes that vectors in them are aligned.
        if (!is_short_) stage.align_storage(stage.args()[0], array_alignment);
        if (stage.args().empty() || stage.args()[0].name() != Var("x").name()) {
            if (together_ > 1) stage.gpu_threads(rows_[0]);
            return;
        }
        if (is_short_) {
            stage.unroll(stage.args()[0]); // without an address, it stays in registers
        } else {
            spread_columns(stage, stage.args()[0], together);
            if (together_ > 1) stage.reorder(rows_[0], stage.args()[0]).unroll(rows_[0]); // reads all elements before the first is used
        }
    }

    /// Bounds stages to the element, or the columns, of one row. Halide cannot prove this if several outputs share the loop.
    void bound_rows(Func stage, int count) const {
        for (const Var &arg : stage.args()) {
            const bool is_row = std::ranges::any_of(rows_, [&](const Var &row) { return row.name() == arg.name(); });
            if (is_row) stage.bound_extent(arg, count);
            if (arg.name() == Var("x").name()) stage.bound(arg, 0, to_expr(stages_.columns, kernel_));
        }
    }

    /// Lanes stay in registers, because unrolling removes their address.
    void reduce_in_thread(Func stage) const {
        const Var lane = stage.args()[0];
        stage.compute_at(row()).unroll(lane);
        for (int i = 0; i < stage.num_update_definitions(); i++) {
            stage.update(i).unroll(lane);
            for (const RVar &step : stage.rvars(i)) stage.update(i).unroll(step);
        }
    }

    /// For a single row, each stage is a launch.
    void place_single(Func stage) {
        stage.compute_root();
        const auto is_stage = [&](const Func &fold) { return fold.name() == stage.name(); };
        if (std::ranges::any_of(stages_.lanes.fold, is_stage)) {
            spread_blocks(stage, {});
        } else {
            spread_all(stage, tiles_.at("threads"));
        }
    }

    void reduce(Func partial, const Func &lane, const Func &fold) {
        if (rows_.empty()) return reduce_in_block(partial, lane, LoopLevel(fold, block_loop()));
        bound_rows(partial, 1);
        if (lane.name() != partial.name()) bound_rows(lane, together_);
        if (is_short_) {
            reduce_in_thread(partial);
            if (lane.name() != partial.name()) reduce_in_thread(lane);
        } else if (together_ > 1) {
            bound_rows(partial.in(), together_);
            reduce_in_block(partial, lane, row(), rows_[0]);
        } else {
            reduce_in_block(partial, lane, row());
        }
    }

    /// A warp adds the sums of a lane, with one thread for each column of the output. Lanes are combined in shared memory.
    void add_blocks(Func lanes) const {
        const auto output = std::ranges::find_if(kernel_.outputs, [&](const KernelOutput &o) { return is_sum_of_rows(kernel_, o); });
        internal_check(output != kernel_.outputs.end(), "a row kernel sums over its rows for no output");
        bound_loops(kernel_, *output);
        const Var x = lanes.args()[0], lane = lanes.args()[1], in_warp("in_warp");
        Stage nest = loop_nest(output->func);
        nest.split(output->func.args()[0], block_loop(), in_warp, warp_threads, TailStrategy::GuardWithIf)
            .gpu_blocks(block_loop())
            .gpu_threads(in_warp);
        Func all = lanes.in();
        all.compute_at(output->func, block_loop()).bound_extent(x, warp_threads).gpu_threads(x, lane);
        lanes.compute_at(all, x).bound_extent(x, 1).bound_extent(lane, 1);
        read_ahead(lanes, 0);
    }

    LoweredKernel &kernel_;
    const RowStages &stages_;
    const Tiles &tiles_;
    bool is_cuda_, sums_rows_, is_short_;
    int together_ = 1; ///< rows that one iteration of the loop over a block's rows computes
    std::optional<Func> leader_;
    std::vector<Var> rows_;
};

} // namespace

void schedule_row(LoweredKernel &kernel, const Tiles &tiles, const Target &target) {
    if (std::get<RowStages>(kernel.stages).warp_neighbours > 0) return schedule_row_in_warp(kernel, tiles, target);
    RowSchedule(kernel, tiles, target.has_feature(Target::CUDA)).apply();
}

} // namespace scalide::gpu
