#include "schedules/cpu/kinds.h"
#include "schedules/cpu/loops.h"

// sort: a task sorts lines one after the other, or with a network as many lines at a time as a vector has lanes. Digits are counted and
// moved element by element. Tiles:
//   task   elements of a parallel task
//   lanes  elements in a vector
namespace scalide {
using namespace Halide;

namespace {

/// `lines` is the number of lines that a vector sorts; 0: there is only one line.
void schedule_network(Func network, int lines) {
    Stage fill = network.update(0), exchange = network.update(1);
    exchange.unroll(network.rvars(1)[0]);
    if (lines == 0) return;
    const Var line = network.args()[0];
    network.bound_extent(line, lines);
    fill.reorder(line, network.rvars(0)[0]).vectorize(line);
    std::vector<VarOrRVar> order = {line};
    for (const RVar &loop : network.rvars(1)) order.emplace_back(loop);
    exchange.reorder(order).vectorize(line);
}

void schedule_digits(const std::vector<Func> &keys, Func order, int lanes) {
    for (Func words : keys) words.vectorize(words.args()[0], lanes, TailStrategy::Predicate);
    order.update(0).vectorize(order.rvars(0)[0], lanes, TailStrategy::Predicate);
    for (int update = 1; update < order.num_update_definitions(); update++) {
        const std::vector<RVar> loops = order.rvars(update);
        if (loops.size() == 2) {
            order.update(update).unroll(loops[0]); // the two steps of a move
        } else {
            order.update(update).unscheduled();
        }
    }
}

void compute_in(Func stage, Func output, const std::optional<Var> &loop) { loop ? stage.compute_at(output, *loop) : stage.compute_root(); }

/// The stages in front of the output, computed in its loop over lines. `together`: as in schedule_network.
void schedule_stages(const SortStages &stages, Func output, const std::optional<Var> &loop, int together, const Tiles &tiles) {
    if (stages.network.defined()) {
        compute_in(stages.network, output, loop);
        schedule_network(stages.network, together);
        return;
    }
    for (const Func &words : stages.words) compute_in(words, output, loop);
    compute_in(stages.order, output, loop);
    schedule_digits(stages.words, stages.order, tiles.at("lanes"));
}

} // namespace

void schedule_sort(LoweredKernel &kernel, const Tiles &tiles, const Target &) {
    Func output = kernel.outputs[0].func;
    const std::vector<Expr> extents = bound_loops(kernel, kernel.outputs[0]);
    const std::vector<Var> axes = output.args();
    const auto &stages = std::get<SortStages>(kernel.stages);
    const auto axis = size_t(stages.axis);
    const size_t innermost = axis == 0; // of the axes that are not sorted
    const bool has_groups = stages.network.defined() && axes.size() > 1;
    Stage nest = loop_nest(output);
    std::vector<VarOrRVar> order = {axes[axis]};
    std::vector<Var> outer;
    Expr lines = 1;
    for (size_t d = 0; d < axes.size(); d++) {
        if (d == axis) continue;
        outer.push_back(axes[d]);
        lines = lines * extents[d];
    }
    const Var line("line");
    int together = 1;
    if (has_groups) {
        together = lanes_for(extents[innermost], tiles.at("lanes"));
        nest.split(axes[innermost], axes[innermost], line, together, TailStrategy::GuardWithIf);
        order.insert(axis == 0 ? order.end() : order.begin(), line);
    }
    order.insert(order.end(), outer.begin(), outer.end());
    nest.reorder(order);
    if (has_groups && axis != 0) {
        nest.vectorize(line);
    } else {
        vectorize_masked(nest, axes[axis], extents[axis], tiles.at("lanes"));
    }
    const std::optional<Var> loop = fuse_loops(nest, outer);
    if (loop) parallelize(nest, *loop, (lines + together - 1) / together, extents[axis] * together, tiles.at("task"));
    schedule_stages(stages, output, loop, has_groups ? together : 0, tiles);
}

} // namespace scalide
