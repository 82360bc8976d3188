#include "schedules/cpu/kinds.h"
#include "schedules/cpu/loops.h"

// scan: a task scans whole lines and writes them, several lines in parallel vector lanes. These are adjacent along the innermost axis. If
// that axis is scanned, they are rows: their elements are gathered into vectors and are adjacent during the scan. Tiles:
//   task     elements of a parallel task
//   lanes    elements in a vector
//   columns  adjacent lines that are scanned together
//   rows     rows that are scanned together
namespace scalide {
namespace {
using namespace Halide;

class ScanSchedule {
public:
    ScanSchedule(LoweredKernel &kernel, const Tiles &tiles)
        : kernel_(kernel), tiles_(tiles), output_(kernel.outputs[0].func), scan_(std::get<ScanStages>(kernel.stages).scan),
          axis_(std::get<ScanStages>(kernel.stages).axis), extents_(bound_loops(kernel, kernel.outputs[0])), nest_(loop_nest(output_)) {}

    void apply() {
        const std::vector<Var> axes = output_.args();
        if (axis_ != 0) return scan_columns(axes);
        vectorize_masked(nest_, axes[0], extents_[0], tiles_.at("lanes"));
        if (axes.size() > 1) return scan_rows(axes);
        scan_.compute_root();
    }

private:
    void scan_rows(const std::vector<Var> &axes) {
        const int rows = tiles_.at("rows");
        const std::vector<Var> args = scan_.args();
        Var group("group");
        nest_.split(axes[1], group, axes[1], rows, TailStrategy::GuardWithIf);
        std::vector<Var> outer = {group}, storage = args;
        outer.insert(outer.end(), axes.begin() + 2, axes.end());
        Expr groups = (extents_[1] + rows - 1) / rows;
        for (size_t d = 2; d < axes.size(); d++) groups = groups * extents_[d];
        place(outer, groups, extents_[0] * min(extents_[1], rows));
        std::swap(storage[0], storage[1]);
        scan_.reorder_storage(storage).reorder(args[1], args[0]).vectorize(args[1], rows, TailStrategy::Predicate);
        scan_.update().reorder({VarOrRVar(args[1]), VarOrRVar(scan_.rvars(0)[0])}).vectorize(args[1], rows, TailStrategy::Predicate);
    }

    void scan_columns(const std::vector<Var> &axes) {
        std::vector<Var> outer;
        Expr lines = 1;
        for (int d = 1; d < int(axes.size()); d++) {
            if (d == axis_) continue;
            outer.push_back(axes[d]);
            lines = lines * extents_[d];
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

    /// Computes the scan in the fused loops over `outer`, which become tasks.
    void place(const std::vector<Var> &outer, const Expr &count, const Expr &work) {
        const Var loop = *fuse_loops(nest_, outer);
        parallelize(nest_, loop, count, work, tiles_.at("task"));
        scan_.compute_at(output_, loop);
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
