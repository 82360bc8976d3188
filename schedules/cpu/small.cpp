#include "schedules/cpu/kinds.h"
#include "schedules/cpu/loops.h"

// small: one thread computes stage after stage. Stages lie on the stack. Loops of few iterations are unrolled, so that LLVM keeps their
// elements in registers from one stage to the next. Tiles:
//   unroll        iterations of a loop that are unrolled
//   accumulators  vectors of sums that are added together
namespace scalide {
namespace {
using namespace Halide;

class SmallSchedule {
public:
    SmallSchedule(LoweredKernel &kernel, const Tiles &tiles)
        : kernel_(kernel), stages_(std::get<SmallStages>(kernel.stages)), unroll_(tiles.at("unroll")),
          accumulators_(tiles.at("accumulators")) {}

    void apply() {
        for (const SmallStage &stage : stages_.funcs) place(stage);
        place_lanes();
        for (const KernelOutput &output : kernel_.outputs) {
            const std::vector<Expr> known = bound_loops(kernel_, output);
            std::vector<int64_t> extents;
            for (const Expr &extent : known) extents.push_back(*Internal::as_const_int(extent));
            schedule_elements(loop_nest(output.func), output.func.args(), extents);
        }
    }

private:
    void place(const SmallStage &stage) {
        Func func = stage.func;
        const std::vector<Var> args = func.args();
        func.compute_root().store_in(MemoryType::Stack);
        for (size_t axis = 0; axis < args.size(); axis++) func.bound(args[axis], 0, int(stage.extents[axis]));
        if (stage.kind == SmallStage::Kind::joined) return join_vectors(func);
        schedule_elements(func, args, stage.extents);
        if (stage.kind != SmallStage::Kind::value) schedule_terms(stage);
    }

    /// The lanes of a vector are different elements. Two vectors may share elements, which are equal.
    static void join_vectors(Func func) {
        const std::vector<RVar> vector = func.rvars(0);
        std::vector<VarOrRVar> order = {vector[0], vector[1]};
        for (size_t axis = 1; axis < func.args().size(); axis++) order.emplace_back(func.args()[axis]);
        func.update().allow_race_conditions().reorder(order).vectorize(vector[0]).unroll(vector[1]);
    }

    /// Reductions of lines: the loops over the lines are serial.
    void place_lanes() {
        const LaneStages &lanes = stages_.lanes;
        for (size_t i = 0; i < lanes.fold.size(); i++) {
            for (Func func : {lanes.partial[i], lanes.lane[i], lanes.fold[i]}) func.compute_root().store_in(MemoryType::Stack);
            vectorize_partial(lanes.partial[i]);
        }
        vector_lanes(lanes);
    }

    void schedule_elements(Stage nest, const std::vector<Var> &axes, const std::vector<int64_t> &extents) const {
        if (axes.empty()) return;
        split_lanes(nest, axes[0], extents[0]);
        int64_t iterations = 1;
        for (size_t axis = 1; axis < axes.size(); axis++) {
            iterations *= extents[axis];
            if (iterations <= unroll_) nest.unroll(axes[axis]);
        }
    }

    /// Divides the innermost axis into vectors, of which a few are unrolled. Returns the loop over vectors; nullopt if one is enough.
    std::optional<Var> split_lanes(Stage nest, const Var &x, int64_t extent) const {
        if (extent <= small_lanes) {
            nest.vectorize(x);
            return std::nullopt;
        }
        Var vectors("vectors");
        nest.split(x, vectors, x, small_lanes, extent % small_lanes == 0 ? TailStrategy::Auto : TailStrategy::Predicate).vectorize(x);
        if (extent <= small_lanes * int64_t(unroll_)) nest.unroll(vectors);
        return vectors;
    }

    /// Vectors of a row and a few rows have accumulators of their own, to which each term is added.
    void schedule_terms(const SmallStage &stage) const {
        Func func = stage.func;
        const std::vector<Var> axes = func.args();
        if (axes.empty()) return;
        Stage nest = func.update();
        std::vector<VarOrRVar> order = {axes[0]}, outer;
        const std::optional<Var> vectors = split_lanes(nest, axes[0], stage.extents[0]);
        if (vectors) order.emplace_back(*vectors);
        const bool has_vectors = stage.kind == SmallStage::Kind::vectors;
        if (has_vectors) order.emplace_back(axes[1]);
        if (has_vectors && stage.extents[1] <= unroll_) nest.unroll(axes[1]);
        for (size_t axis = has_vectors ? 2 : 1; axis < axes.size(); axis++) outer.emplace_back(axes[axis]);
        if (!outer.empty()) {
            const int64_t together =
                rows_together(stage.extents[has_vectors ? 2 : 1], has_vectors ? stage.extents[1] : stage.extents[0] / small_lanes);
            const Var row = outer[0].var;
            Var blocks("blocks");
            nest.split(row, blocks, row, int(together)).unroll(row);
            order.emplace_back(row);
            outer[0] = blocks;
        }
        order.emplace_back(func.rvars(0)[0]);
        order.insert(order.end(), outer.begin(), outer.end());
        nest.reorder(order);
    }

    /// Returns the rows that are added together: a divisor of all rows, so that there is no rest.
    int64_t rows_together(int64_t rows, int64_t vectors) const {
        int64_t together = std::max<int64_t>(1, accumulators_ / std::max<int64_t>(1, vectors));
        while (rows % together != 0) together--;
        return together;
    }

    LoweredKernel &kernel_;
    const SmallStages &stages_;
    const int unroll_, accumulators_;
};

} // namespace

void schedule_small(LoweredKernel &kernel, const Tiles &tiles, const Target &) { SmallSchedule(kernel, tiles).apply(); }

} // namespace scalide
