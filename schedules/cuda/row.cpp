#include "schedules/cuda/kinds.h"
#include "schedules/cuda/loops.h"
#include <algorithm>
#include <optional>

// row: a block of threads a row, which keeps what it makes of its row in shared memory; short rows: a thread a row. Tiles:
//   threads      of a block
//   thread_row   columns up to which one thread makes a row
namespace scalide::cuda {
namespace {
using namespace Halide;

class RowSchedule {
public:
    RowSchedule(LoweredKernel &kernel, const Tiles &tiles)
        : kernel_(kernel), tiles_(tiles), is_short_(is_known_short(kernel, tiles.at("thread_row"))) {}

    void apply() {
        for (const KernelOutput &output : kernel_.outputs) {
            bound_loops(kernel_, output);
            if (!output.func.args().empty()) join(output.func);
        }
        for (Func stored : kernel_.stages["stored"]) {
            stored.compute_root();
            join(stored);
        }
        schedule_totals(kernel_, "whole_");
        for (const char *name : {"element", "scalar", "fold"}) {
            for (const Func &stage : kernel_.stages[name]) place(stage);
        }
        for (size_t i = 0; i < kernel_.stages["partial"].size(); i++) {
            reduce(kernel_.stages["partial"][i], kernel_.stages["lane"][i], kernel_.stages["fold"][i]);
        }
    }

private:
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
            spread_tiles(nest, rows, tiles_.at("threads"));
        } else {
            if (columns) spread_columns(nest, *columns);
            spread_blocks(nest, rows);
        }
        if (leader_) {
            nest.compute_with(LoopLevel(*leader_, loop, leader_->num_update_definitions()), LoopAlignStrategy::AlignStart);
        } else {
            leader_ = func;
            rows_ = rows;
        }
    }

    void spread_columns(Stage nest, const Var &columns) {
        Var step("step");
        nest.split(columns, step, columns, tiles_.at("threads"), TailStrategy::GuardWithIf);
        nest.reorder({step, columns}).gpu_threads(columns);
    }

    /// The loop over rows; of a single row there is none.
    LoopLevel row() const { return {*leader_, is_short_ ? thread_loop() : block_loop()}; }

    void place(Func stage) {
        if (rows_.empty()) return place_single(stage);
        stage.compute_at(row());
        bound_rows(stage);
        const bool has_columns = !stage.args().empty() && stage.args()[0].name() == Var("x").name();
        if (is_short_) return;
        if (has_columns) spread_columns(stage, stage.args()[0]);
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
        for (int i = 0; i < stage.num_update_definitions(); i++) stage.update(i).unroll(lane);
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
    bool is_short_;
    std::optional<Func> leader_;
    std::vector<Var> rows_;
};

} // namespace

void schedule_row(LoweredKernel &kernel, const Tiles &tiles, const Target &) { RowSchedule(kernel, tiles).apply(); }

} // namespace scalide::cuda
