#include "schedules/cpu/kinds.h"
#include "schedules/cpu/loops.h"
#include <algorithm>

// scatter: the copy is a map. The updates run one after the other; axes that all windows cover are divided into tasks and vectors. Tiles:
//   task   elements of a parallel task
//   lanes  elements in a vector
//   count  updates of a parallel task, if blocks of updates run in parallel
namespace scalide {
namespace {
using namespace Halide;

std::vector<VarOrRVar> in_order(const std::vector<RVar> &updates, const std::vector<Var> &inner, const std::vector<Var> &outer) {
    std::vector<VarOrRVar> order(inner.begin(), inner.end());
    order.insert(order.end(), updates.begin(), updates.end());
    order.insert(order.end(), outer.begin(), outer.end());
    return order;
}

void schedule_counts(Func func, const ScatterStages &stages, const Tiles &tiles) {
    Func counts = stages.counts;
    const Var element = func.args()[0], turn = counts.args()[1], part = counts.args()[2];
    const int lanes = tiles.at("lanes");
    counts.compute_root().vectorize(counts.args()[0], lanes, TailStrategy::GuardWithIf);
    Stage update = counts.update();
    update.reorder(turn, counts.rvars(0)[0], part).unroll(turn);
    parallelize(update, part, stages.blocks, stages.block, tiles.at("count"));
    func.update().reorder(element, func.rvars(0)[0], func.rvars(0)[1]).vectorize(element, lanes, TailStrategy::GuardWithIf);
}

} // namespace

void schedule_scatter(LoweredKernel &kernel, const Tiles &tiles, const Target &) {
    Func func = kernel.outputs[0].func;
    const std::vector<Expr> extents = bound_loops(kernel, kernel.outputs[0]);
    const std::vector<Var> axes = func.args();
    schedule_nest(func, axes, extents, tiles);
    const auto &stages = std::get<ScatterStages>(kernel.stages);
    if (stages.counts.defined()) return schedule_counts(func, stages, tiles);
    const std::vector<int> &whole = stages.whole;
    Stage update = func.update();
    std::vector<Var> inner, outer;
    Expr lines = 1, work = 1;
    for (const int d : whole) {
        (d == 0 ? inner : outer).push_back(axes[d]);
        if (d != 0) lines = lines * extents[d];
    }
    update.reorder(in_order(func.rvars(0), inner, outer));
    for (const Var &x : inner) vectorize_masked(update, x, extents[0], tiles.at("lanes"));
    for (int d = 0; d < int(axes.size()); d++) {
        if (std::ranges::find(whole, d) == whole.end() || d == 0) work = work * extents[d];
    }
    if (const std::optional<Var> loop = fuse_loops(update, outer)) parallelize(update, *loop, lines, work, tiles.at("task"));
}

} // namespace scalide
