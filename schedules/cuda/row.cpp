#include "schedules/cuda/kinds.h"
#include "schedules/cuda/loops.h"
#include "schedules/cuda/row_warp.h"
#include <algorithm>
#include <optional>

// row: a warp a row (row_warp.h), of long rows and of those whose length is symbolic a block of threads, which keeps what it makes of its
// row in shared memory; short rows: a thread a row. Tiles:
//   threads         of a block
//   columns         from here on a row is long: `threads_columns` threads make its elements, several neighbours each where they are known
//                   to be a multiple; sums have the lanes of the lowering
//   threads_columns
//   thread_row      columns up to which one thread makes a row
//   warps           rows of a block whose warps make one each
namespace scalide::cuda {
namespace {
using namespace Halide;

class RowSchedule {
public:
    RowSchedule(LoweredKernel &kernel, const Tiles &tiles, bool is_cuda)
        : kernel_(kernel), tiles_(tiles), is_cuda_(is_cuda), is_short_(is_known_short(kernel, tiles.at("thread_row"))) {}

    void apply() {
        join_rows(kernel_, [this](const Func &func) { join(func); });
        for (const char *name : {"argument", "element", "scalar", "fold"}) {
            for (const Func &stage : kernel_.stages[name])
                place(stage, name == std::string("argument") ? array_alignment / stage.type().bytes() : four);
        }
        for (size_t i = 0; i < kernel_.stages["partial"].size(); i++) {
            reduce(kernel_.stages["partial"][i], kernel_.stages["lane"][i], kernel_.stages["fold"][i]);
        }
    }

private:
    /// Elements of an access of shared memory: threads then meet no bank twice. One of f32 has 16 bytes.
    static constexpr int four = 4;

    static bool is_known_short(const LoweredKernel &kernel, int most) {
        const Extent &columns = kernel.extents.at("columns");
        const bool few_axes = std::ranges::all_of(kernel.outputs, [](const KernelOutput &output) {
            const std::vector<Var> args = output.func.args();
            return args.empty() || args.size() <= most_tile_loops + size_t(args[0].name() == Var("x").name());
        });
        return columns.is_static() && columns.value() <= most && few_axes;
    }

    /// The first Func leads, the others run in its loop over rows.
    void join(Func func) {
        Stage nest = loop_nest(func);
        std::vector<Var> rows = func.args();
        std::optional<Var> columns;
        if (rows[0].name() == Var("x").name()) {
            columns = rows[0];
            rows.erase(rows.begin());
        }
        const Var loop = is_short_ && !rows.empty() ? thread_loop() : block_loop();
        if (is_short_ && !rows.empty()) {
            if (columns) nest.unroll(*columns);
            spread_tiles(nest, rows, tiles_.at("threads"));
        } else {
            if (columns) spread_columns(nest, *columns, four);
            spread_blocks(nest, rows);
        }
        if (leader_) {
            nest.compute_with(LoopLevel(*leader_, loop, leader_->num_update_definitions()), LoopAlignStrategy::AlignStart);
        } else {
            leader_ = func;
            rows_ = rows;
        }
    }

    bool is_long() const {
        const Extent &columns = kernel_.extents.at("columns");
        return columns.is_static() && columns.value() >= tiles_.at("columns");
    }

    /// A thread makes up to `together` neighbours.
    void spread_columns(Stage nest, const Var &columns, int together) const {
        Var step("step"), neighbour("neighbour");
        const int64_t count = is_long() ? kernel_.extents.at("columns").value() : 1;
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
        if (is_long() && count <= int64_t(8) * threads * together) nest.unroll(step); // all are read before the first is used
    }

    /// The loop over rows; of a single row there is none.
    LoopLevel row() const { return {*leader_, is_short_ ? thread_loop() : block_loop()}; }

    void place(Func stage, int together) {
        if (rows_.empty()) return place_single(stage);
        stage.compute_at(row());
        bound_rows(stage);
        // Halide puts the arrays of shared memory one behind the other, and takes vectors in them to be aligned.
        if (!is_short_) stage.align_storage(stage.args()[0], array_alignment);
        if (stage.args().empty() || stage.args()[0].name() != Var("x").name()) return;
        if (is_short_) {
            stage.unroll(stage.args()[0]); // what has no address is in registers
        } else {
            spread_columns(stage, stage.args()[0], together);
        }
    }

    /// Stages have the element, or the columns, of one row, which Halide cannot prove where several outputs share the loop.
    void bound_rows(Func stage) const {
        for (const Var &arg : stage.args()) {
            const bool is_row = std::ranges::any_of(rows_, [&](const Var &row) { return row.name() == arg.name(); });
            if (is_row) stage.bound_extent(arg, 1);
            if (arg.name() == Var("x").name()) stage.bound(arg, 0, to_expr(kernel_.extents.at("columns"), kernel_));
        }
    }

    /// Lanes in registers, which have no address.
    void reduce_in_thread(Func stage) const {
        const Var lane = stage.args()[0];
        stage.compute_at(row()).unroll(lane);
        for (int i = 0; i < stage.num_update_definitions(); i++) {
            stage.update(i).unroll(lane);
            for (const RVar &step : stage.rvars(i)) stage.update(i).unroll(step);
        }
    }

    /// Each stage is a launch.
    void place_single(Func stage) {
        stage.compute_root();
        if (stage.name().starts_with("fold")) {
            spread_blocks(stage, {});
        } else {
            spread_all(stage, tiles_.at("threads"));
        }
    }

    void reduce(Func partial, const Func &lane, const Func &fold) {
        if (rows_.empty()) return reduce_in_block(partial, lane, LoopLevel(fold, block_loop()));
        bound_rows(partial);
        if (lane.name() != partial.name()) bound_rows(lane);
        if (is_short_) {
            reduce_in_thread(partial);
            if (lane.name() != partial.name()) reduce_in_thread(lane);
        } else {
            reduce_in_block(partial, lane, row());
        }
    }

    LoweredKernel &kernel_;
    const Tiles &tiles_;
    bool is_cuda_, is_short_;
    std::optional<Func> leader_;
    std::vector<Var> rows_;
};

} // namespace

void schedule_row(LoweredKernel &kernel, const Tiles &tiles, const Target &target) {
    if (kernel.facts.at("warp") == Attribute(1)) return schedule_row_in_warp(kernel, tiles, target);
    RowSchedule(kernel, tiles, target.has_feature(Target::CUDA)).apply();
}

} // namespace scalide::cuda
