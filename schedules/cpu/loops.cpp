#include "schedules/cpu/loops.h"
#include <bit>

namespace scalide {
using Halide::Expr;
using Halide::TailStrategy;
using Halide::Var;

namespace {

std::optional<int64_t> known(const Expr &e) {
    const Expr simple = Halide::Internal::simplify(e);
    auto value = Halide::Internal::as_const_int(simple);
    return value ? std::optional<int64_t>(*value) : std::nullopt;
}

} // namespace

int lanes_for(const Expr &extent, int lanes) {
    const std::optional<int64_t> size = known(extent);
    return size && *size < lanes ? int(std::bit_ceil(uint64_t(std::max<int64_t>(*size, 1)))) : lanes;
}

void vectorize_masked(Halide::Stage nest, const Halide::VarOrRVar &loop, const Expr &extent, int lanes) {
    lanes = lanes_for(extent, lanes);
    std::optional<int64_t> rest = known(extent % lanes);
    nest.vectorize(loop, lanes, rest && *rest == 0 ? TailStrategy::Auto : TailStrategy::Predicate);
}

Halide::VarOrRVar new_loop_like(const Halide::VarOrRVar &loop, const std::string &name) {
    return loop.is_rvar ? Halide::VarOrRVar(Halide::RVar(name)) : Halide::VarOrRVar(Var(name));
}

// Tasks have equal sizes, instead of `task` elements and a shorter last one. Their loops then have exact extents, instead of a constant
// extent with a test in every iteration.
void parallelize(Halide::Stage nest, const Halide::VarOrRVar &loop, const Expr &count, const Expr &work, int task) {
    std::optional<int64_t> all = known(count * work);
    if (all && *all <= task) {
        return;
    }
    Expr grain = max(1, task / max(work, 1));
    Expr tasks = max(1, (count + grain - 1) / grain);
    Expr size = max(1, (count + tasks - 1) / tasks);
    const Halide::VarOrRVar outer = new_loop_like(loop, "task");
    nest.split(loop, outer, loop, Halide::Internal::simplify(size), TailStrategy::GuardWithIf).parallel(outer).never_partition(outer);
}

Expr product(const std::vector<Expr> &extents) {
    Expr result = 1;
    for (const Expr &extent : extents) {
        result = result * extent;
    }
    return result;
}

void vectorize_partial(Halide::Func partial) {
    Var lane = partial.args()[0];
    partial.vectorize(lane);
    for (int i = 0; i < partial.num_update_definitions(); i++) {
        const std::vector<Halide::RVar> domain = partial.rvars(i);
        std::vector<Halide::VarOrRVar> order(domain.begin(), domain.end());
        if (i == 0) {
            order.insert(order.begin(), lane);
            partial.update(0).reorder(order).vectorize(lane);
        } else {
            partial.update(i).vectorize(domain[0], 16, TailStrategy::Predicate);
        }
    }
}

namespace {
constexpr int blocks_of_task = 16; ///< blocks have 4096 elements (lower/rows/totals.cpp)
}

void schedule_totals(const TotalStages &stages) {
    const LaneStages &lanes = stages.lanes;
    for (size_t i = 0; i < lanes.fold.size(); i++) {
        Halide::Func fold = lanes.fold[i];
        fold.compute_root();
        for (Halide::Func inner : {lanes.lane[i], lanes.partial[i]}) {
            if (fold.args().empty()) {
                inner.compute_root();
            } else {
                inner.compute_at(fold, fold.args()[0]);
            }
        }
        if (!fold.args().empty()) {
            Var task("task");
            fold.split(fold.args()[0], task, fold.args()[0], blocks_of_task, TailStrategy::GuardWithIf).parallel(task);
        }
        vectorize_partial(lanes.partial[i]);
    }
    vector_lanes(lanes);
    for (Halide::Func total : stages.totals) total.compute_root();
}

std::vector<Halide::Func> vector_lanes(const LaneStages &stages) {
    std::vector<Halide::Func> lanes;
    for (size_t i = 0; i < stages.lane.size(); i++) {
        Halide::Func lane = stages.lane[i];
        if (lane.name() != stages.partial[i].name()) lanes.push_back(lane.vectorize(lane.args()[0]));
    }
    return lanes;
}

} // namespace scalide
