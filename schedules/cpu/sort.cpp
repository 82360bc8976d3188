#include "schedules/cpu/kinds.h"
#include "schedules/cpu/loops.h"

// sort: a task sorts lines one after the other, each in vectors. Passes write one half of the network and read the other, so that the
// elements of a vector do not meet. Tiles:
//   task   elements of a parallel task
//   lanes  elements computed together
namespace scalide {
using namespace Halide;

void schedule_sort(LoweredKernel &kernel, const Tiles &tiles, const Target &) {
    Func output = kernel.outputs[0].func, network = kernel.stages.at("network")[0];
    const std::vector<Expr> extents = bound_loops(kernel, kernel.outputs[0]);
    const std::vector<Var> axes = output.args();
    const auto axis = size_t(to_number(kernel.facts.at("axis")));
    Stage nest = loop_nest(output);
    std::vector<VarOrRVar> order = {axes[axis]};
    std::vector<Var> outer;
    Expr lines = 1;
    for (size_t d = 0; d < axes.size(); d++) {
        if (d == axis) continue;
        outer.push_back(axes[d]);
        lines = lines * extents[d];
    }
    order.insert(order.end(), outer.begin(), outer.end());
    nest.reorder(order);
    vectorize_masked(nest, axes[axis], extents[axis], tiles.at("lanes"));
    if (const std::optional<Var> loop = fuse_loops(nest, outer)) {
        parallelize(nest, *loop, lines, extents[axis], tiles.at("task"));
        network.compute_at(output, *loop);
    } else {
        network.compute_root();
    }
    network.update(0).vectorize(network.args()[0], tiles.at("lanes"), TailStrategy::Predicate);
    network.update(1).allow_race_conditions().vectorize(network.rvars(1)[0], tiles.at("lanes"), TailStrategy::Predicate);
}

} // namespace scalide
