#include "schedules/cpu/loops.h"

// Outputs whose elements do not depend on each other's loops. Tiles:
//   task   elements of a parallel task
//   lanes  elements computed together
namespace scalide {
namespace {

/// Only the inner loop is long: cut its vectors into tasks.
void schedule_line(Halide::Stage nest, const Halide::Var &x, const Halide::Expr &columns, const Tiles &tiles) {
    const int lanes = tiles.at("lanes");
    Halide::Var vector("vector");
    nest.split(x, vector, x, lanes, Halide::TailStrategy::Predicate).vectorize(x);
    parallelize(nest, vector, (columns + lanes - 1) / lanes, lanes, tiles.at("task"));
}

/// Whole rows, as many as make a task; long rows are cut first.
void schedule_rows(Halide::Stage nest, const std::vector<Halide::Var> &axes, const std::vector<Halide::Expr> &extents, const Tiles &tiles) {
    const int task = tiles.at("task");
    std::vector<Halide::Var> outer(axes.begin() + 1, axes.end());
    Halide::Expr pieces = 1, work = extents[0];
    std::vector<Halide::Expr> rows(extents.begin() + 1, extents.end());
    if (!Halide::Internal::can_prove(extents[0] <= task)) {
        Halide::Var piece("piece");
        nest.split(axes[0], piece, axes[0], task, Halide::TailStrategy::GuardWithIf);
        outer.insert(outer.begin(), piece);
        pieces = (extents[0] + task - 1) / task;
        work = min(work, task);
    }
    vectorize_masked(nest, axes[0], extents[0], tiles.at("lanes"));
    parallelize(nest, *fuse_loops(nest, outer), product(rows) * pieces, work, task);
}

} // namespace

void schedule_nest(Halide::Stage nest, const std::vector<Halide::Var> &axes, const std::vector<Halide::Expr> &extents, const Tiles &tiles) {
    if (axes.size() == 1) {
        schedule_line(nest, axes[0], extents[0], tiles);
    } else if (axes.size() > 1) {
        schedule_rows(nest, axes, extents, tiles);
    }
}

void schedule_elements(const LoweredKernel &kernel, const KernelOutput &output, const Tiles &tiles) {
    schedule_nest(loop_nest(output.func), output.func.args(), bound_loops(kernel, output), tiles);
}

} // namespace scalide
