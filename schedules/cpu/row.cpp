#include "schedules/cpu/kinds.h"
#include "schedules/cpu/loops.h"

// row: a loop over rows, divided into parallel tasks. All stages of a row are computed inside, in the first-level cache. If the kernel also
// sums over rows (lower/rows/row_sums.h), a task is a block of rows, whose running sums stay in a cache. layer_norm's gradient of [8192,
// 4096] takes 22 ms in f32 and in bf16. Two separate kernels take 33 ms (EPYC Zen 5, two threads, others busy, 2026-11-22). Tiles:
//   task   elements of a parallel task
//   lanes  elements in a vector
//   line   the same for results with one axis
namespace scalide {
namespace {
using namespace Halide;

class RowSchedule {
public:
    RowSchedule(LoweredKernel &kernel, const Tiles &tiles)
        : kernel_(kernel), stages_(std::get<RowStages>(kernel.stages)), tiles_(tiles), columns_(to_expr(stages_.columns, kernel)) {}

    void apply() {
        for (const KernelOutput &output : kernel_.outputs) {
            if (!is_sum_of_rows(kernel_, output)) schedule_output(output);
        }
        for (Func stored : stages_.stored) {
            stored.compute_root();
            join(stored, stored.args(), {to_expr(stages_.rows, kernel_)});
        }
        if (sums_rows(kernel_)) schedule_sums();
        schedule_totals(stages_.whole);
        for (const auto *stages : {&stages_.lanes.partial, &stages_.lanes.fold, &stages_.element, &stages_.scalar}) {
            for (const Func &func : *stages) {
                place(func);
            }
        }
        for (const Func &func : stages_.lanes.partial) {
            vectorize_partial(func);
        }
        for (const Func &func : vector_lanes(stages_.lanes)) {
            place(func);
        }
        for (Func func : stages_.element) {
            func.bound(func.args()[0], 0, columns_); // otherwise Halide assumes that partial results read from columns % lanes - lanes on
            vectorize_masked(func, func.args()[0], columns_, lanes());
        }
    }

private:
    int lanes() const { return tiles_.at("lanes"); }

    /// The first output leads; the others share its loop over rows.
    void schedule_output(const KernelOutput &output) {
        const std::vector<Expr> extents = bound_loops(kernel_, output);
        std::vector<Var> rows = output.func.args();
        Stage nest = loop_nest(output.func);
        std::vector<Expr> counts = extents;
        if (!rows.empty() && rows[0].name() == Var("x").name()) {
            vectorize_masked(nest, rows[0], columns_, lanes());
            rows.erase(rows.begin());
            counts.erase(counts.begin());
        }
        join(output.func, rows, counts);
    }

    void join(Func func, const std::vector<Var> &rows, const std::vector<Expr> &counts) {
        Stage nest = loop_nest(func);
        std::optional<Var> row = fuse_loops(nest, rows);
        if (!row) {
            return;
        }
        Var loop = *row;
        if (sums_rows(kernel_)) {
            const Var block("task");
            split_rows(kernel_, func, *row, block);
            nest.parallel(block).never_partition(block);
            loop = block_row_loop();
        } else {
            parallelize(nest, *row, product(counts), columns_, tiles_.at("task"));
        }
        if (!leader_) {
            leader_ = func;
            row_ = *row;
            row_loop_ = loop;
        } else {
            nest.compute_with(LoopLevel(*leader_, loop, leader_->num_update_definitions()), LoopAlignStrategy::AlignStart);
        }
    }

    /// Computes running sums in the loop over rows, with one block a task. Then the blocks are added.
    void schedule_sums() {
        Func running = stages_.sums.running, all = stages_.sums.lanes;
        running.compute_root();
        join(running, {running.args()[1]}, {});
        vectorize_masked(running.update(), running.args()[0], columns_, lanes());
        const Var x = all.args()[0], lane = all.args()[1], vector("vector");
        all.compute_root().vectorize(x, lanes(), TailStrategy::Predicate);
        all.update()
            .split(x, vector, x, lanes(), TailStrategy::Predicate)
            .vectorize(x)
            .reorder({x, all.rvars(0)[0], vector, lane})
            .parallel(lane);
        for (const KernelOutput &output : kernel_.outputs) {
            if (is_sum_of_rows(kernel_, output)) schedule_elements(kernel_, output, tiles_);
        }
    }

    void place(Func func) {
        if (leader_) {
            func.compute_at(*leader_, *row_loop_);
            func.bound_extent(*row_, 1); // Halide cannot prove this if several outputs share the loop
        } else {
            func.compute_root();
        }
    }

    LoweredKernel &kernel_;
    const RowStages &stages_;
    const Tiles &tiles_;
    Expr columns_;
    std::optional<Func> leader_;
    std::optional<Var> row_, row_loop_; ///< the argument, and the loop in which all stages of a row are computed
};

} // namespace

void schedule_row(LoweredKernel &kernel, const Tiles &tiles, const Target &) { RowSchedule(kernel, tiles).apply(); }

} // namespace scalide
