#include "schedules/cpu/kinds.h"
#include "schedules/cpu/loops.h"

// row: a loop over rows in parallel tasks; everything of a row is made inside, from the first-level cache. Tiles:
//   task   elements of a parallel task
//   lanes  elements computed together
namespace scalide {
namespace {
using namespace Halide;

class RowSchedule {
public:
    RowSchedule(LoweredKernel &kernel, const Tiles &tiles)
        : kernel_(kernel), tiles_(tiles), columns_(to_expr(kernel.extents.at("columns"), kernel)) {}

    void apply() {
        for (const KernelOutput &output : kernel_.outputs) {
            schedule_output(output);
        }
        for (Func stored : kernel_.stages["stored"]) {
            stored.compute_root();
            join(stored, stored.args(), {to_expr(kernel_.extents.at("rows"), kernel_)});
        }
        schedule_totals(kernel_, "whole_");
        for (const char *stage : {"partial", "fold", "element", "scalar"}) {
            for (Func func : kernel_.stages[stage]) {
                place(func);
            }
        }
        for (Func func : kernel_.stages["partial"]) {
            vectorize_partial(func);
        }
        for (Func func : vector_lanes(kernel_)) {
            place(func);
        }
        for (Func func : kernel_.stages["element"]) {
            vectorize_masked(func, func.args()[0], columns_, lanes());
        }
    }

private:
    int lanes() const { return tiles_.at("lanes"); }

    /// The first output leads, the others run in its row loop.
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
        parallelize(nest, *row, product(counts), columns_, tiles_.at("task"));
        if (!leader_) {
            leader_ = func;
            row_ = *row;
        } else {
            nest.compute_with(LoopLevel(*leader_, *row_, leader_->num_update_definitions()), LoopAlignStrategy::AlignStart);
        }
    }

    void place(Func func) {
        if (leader_) {
            func.compute_at(*leader_, *row_);
            func.bound_extent(*row_, 1); // which Halide cannot prove where several outputs share the loop
        } else {
            func.compute_root();
        }
    }

    LoweredKernel &kernel_;
    const Tiles &tiles_;
    Expr columns_;
    std::optional<Func> leader_;
    std::optional<Var> row_;
};

} // namespace

void schedule_row(LoweredKernel &kernel, const Tiles &tiles, const Target &) { RowSchedule(kernel, tiles).apply(); }

} // namespace scalide
