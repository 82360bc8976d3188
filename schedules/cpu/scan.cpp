#include "schedules/cpu/kinds.h"
#include "schedules/cpu/loops.h"

// scan: a task scans whole lines and writes them. Lines along the innermost axis go one after the other; others side by side, as many as
// fill a few vectors. Tiles:
//   task     elements of a parallel task
//   lanes    elements computed together
//   columns  lines that are scanned side by side
namespace scalide {
namespace {
using namespace Halide;

class ScanSchedule {
public:
    ScanSchedule(LoweredKernel &kernel, const Tiles &tiles)
        : kernel_(kernel), tiles_(tiles), output_(kernel.outputs[0].func), scan_(kernel.stages.at("scan")[0]),
          axis_(int(to_number(kernel.facts.at("axis")))), extents_(bound_loops(kernel, kernel.outputs[0])), nest_(loop_nest(output_)) {}

    void apply() {
        const std::vector<Var> axes = output_.args();
        std::vector<Var> outer;
        for (int d = 1; d < int(axes.size()); d++) {
            if (d != axis_) outer.push_back(axes[d]);
        }
        Expr lines = 1;
        for (int d = 1; d < int(axes.size()); d++) {
            if (d != axis_) lines = lines * extents_[d];
        }
        if (axis_ == 0) {
            vectorize_masked(nest_, axes[0], extents_[0], tiles_.at("lanes"));
            place(outer, lines, extents_[0]);
            return;
        }
        Var block("block");
        const int columns = tiles_.at("columns");
        nest_.split(axes[0], block, axes[0], columns, TailStrategy::GuardWithIf)
            .vectorize(axes[0], tiles_.at("lanes"), TailStrategy::Predicate);
        outer.insert(outer.begin(), block);
        std::vector<VarOrRVar> order = {axes[0], axes[axis_]};
        order.insert(order.end(), outer.begin(), outer.end());
        nest_.reorder(order);
        place(outer, lines * ((extents_[0] + columns - 1) / columns), min(extents_[0], columns) * extents_[axis_]);
        const Var column = scan_.args()[0];
        scan_.vectorize(column, tiles_.at("lanes"), TailStrategy::Predicate);
        Var vector("vector");
        scan_.update().split(column, vector, column, tiles_.at("lanes"), TailStrategy::Predicate).vectorize(column);
        scan_.update().reorder({VarOrRVar(column), VarOrRVar(vector), VarOrRVar(scan_.rvars(0)[0])});
    }

private:
    /// Puts the scan into the fused loops over `outer`, which become tasks.
    void place(const std::vector<Var> &outer, const Expr &count, const Expr &work) {
        const std::optional<Var> loop = fuse_loops(nest_, outer);
        if (!loop) {
            scan_.compute_root();
            return;
        }
        parallelize(nest_, *loop, count, work, tiles_.at("task"));
        scan_.compute_at(output_, *loop);
    }

    LoweredKernel &kernel_;
    const Tiles &tiles_;
    Func output_, scan_;
    int axis_;
    std::vector<Expr> extents_;
    Stage nest_;
};

} // namespace

void schedule_scan(LoweredKernel &kernel, const Tiles &tiles, const Target &) { ScanSchedule(kernel, tiles).apply(); }

} // namespace scalide
