#include "schedules/cpu/loops.h"

// Outputs whose elements need no stage in their loops. Tiles:
//   task   elements of a parallel task
//   lanes  elements in a vector
//   line   elements computed together if there is only one loop
namespace scalide {
namespace {
using Halide::TailStrategy;
using Halide::VarOrRVar;

int lanes_of(size_t loops, const Tiles &tiles) { return tiles.at(loops == 1 ? "line" : "lanes"); }

/// Fuses loops, innermost first, into one. One of them may run over a reduction domain.
VarOrRVar fuse_mixed_loops(Halide::Stage nest, const std::vector<VarOrRVar> &loops) {
    VarOrRVar fused = loops[0];
    for (size_t i = 1; i < loops.size(); i++) {
        const VarOrRVar both = fused.is_rvar ? fused : loops[i];
        nest.fuse(fused, loops[i], both);
        fused = both;
    }
    return fused;
}

/// If only the inner loop is long, its vectors are divided into tasks.
void schedule_line(Halide::Stage nest, const VarOrRVar &x, const Halide::Expr &columns, const Tiles &tiles, TailStrategy tail) {
    const int lanes = tiles.at("line");
    const VarOrRVar vector = new_loop_like(x, "vector");
    nest.split(x, vector, x, lanes, tail).vectorize(x);
    parallelize(nest, vector, (columns + lanes - 1) / lanes, lanes, tiles.at("task"));
}

/// Collects conditions that do not depend on loops. They prevent reads of empty arrays.
class Guards : public Halide::Internal::IRGraphVisitor {
public:
    explicit Guards(const Halide::Func &func) {
        for (const Halide::Var &var : func.args()) loops_.push(var.name());
        const Halide::Tuple values = func.values();
        for (const Halide::Expr &value : values.as_vector()) Halide::Internal::substitute_in_all_lets(value).accept(this);
    }
    Halide::Expr all = Halide::Internal::const_true();

private:
    using IRGraphVisitor::visit;
    void visit(const Halide::Internal::Call *call) override {
        if (call->is_intrinsic(Halide::Internal::Call::if_then_else) && !expr_uses_vars(call->args[0], loops_)) {
            all = all && call->args[0];
        }
        IRGraphVisitor::visit(call);
    }
    Halide::Internal::Scope<> loops_;
};

/// If a kernel moves elements, a masked load that is not dense becomes a branch for every lane. So does a load from an array that may be
/// empty. So the usual case, with whole vectors and no empty array, gets a loop of its own, whose last vector is shifted inwards. GB/s of
/// this loop / of the masked loop (one core of a Sapphire Rapids Xeon, 2026-11-21): rev 24 / 0.9, concatenate 15 / 0.9, pad 25 / 0.2, take
/// of rows 42 / 0.1.
void schedule_whole_vectors(const KernelOutput &output, const std::vector<Halide::Expr> &extents, const Tiles &tiles) {
    const std::vector<Halide::Var> axes = output.func.args();
    const int lanes = lanes_of(axes.size(), tiles), task = tiles.at("task");
    Halide::Stage nest = Halide::Stage(output.func).specialize(extents[0] >= lanes && extents[0] <= task && Guards(output.func).all);
    if (axes.size() == 1) {
        return schedule_line(nest, axes[0], extents[0], tiles, TailStrategy::ShiftInwards);
    }
    nest.vectorize(axes[0], lanes, TailStrategy::ShiftInwards);
    const Halide::Var rows = *fuse_loops(nest, {axes.begin() + 1, axes.end()});
    parallelize(nest, rows, product({extents.begin() + 1, extents.end()}), extents[0], task);
}

/// A task has as many whole rows as fit. Long rows are divided first.
void schedule_rows(Halide::Stage nest, const std::vector<VarOrRVar> &axes, const std::vector<Halide::Expr> &extents, const Tiles &tiles) {
    const int task = tiles.at("task");
    std::vector<VarOrRVar> outer(axes.begin() + 1, axes.end());
    Halide::Expr pieces = 1, work = extents[0];
    std::vector<Halide::Expr> rows(extents.begin() + 1, extents.end());
    if (!Halide::Internal::can_prove(extents[0] <= task)) {
        const VarOrRVar piece = new_loop_like(axes[0], "piece");
        pieces = max(1, (extents[0] + task - 1) / task);
        work = max(1, (extents[0] + pieces - 1) / pieces); // with `task`, every row would need that many vectors, even a short one
        nest.split(axes[0], piece, axes[0], work, TailStrategy::GuardWithIf);
        outer.insert(outer.begin(), piece);
    }
    vectorize_masked(nest, axes[0], work, tiles.at("lanes"));
    parallelize(nest, fuse_mixed_loops(nest, outer), product(rows) * pieces, work, task);
}

void schedule_loops(Halide::Stage nest, const std::vector<VarOrRVar> &axes, const std::vector<Halide::Expr> &extents, const Tiles &tiles) {
    if (axes.size() == 1) {
        schedule_line(nest, axes[0], extents[0], tiles, TailStrategy::Predicate);
    } else if (axes.size() > 1) {
        schedule_rows(nest, axes, extents, tiles);
    }
}

/// The parts of a concatenation, one loop nest for each.
void schedule_parts(const KernelOutput &output, const std::vector<Halide::Expr> &extents, const Tiles &tiles) {
    Halide::Func func = output.func;
    const std::vector<Halide::Var> args = func.args();
    const size_t joined = args.size() - 1 - size_t(*output.joined_axis);
    for (int part = 0; part < func.num_update_definitions(); part++) {
        std::vector<VarOrRVar> axes(args.begin(), args.end());
        std::vector<Halide::Expr> of_part = extents;
        axes[joined] = func.rvars(part)[0];
        of_part[joined] = func.function().update(part).schedule().rvars()[0].extent;
        Halide::Stage nest = func.update(part);
        if (axes.size() > 1) nest.reorder(axes);
        schedule_loops(nest, axes, of_part, tiles);
    }
}

} // namespace

void schedule_nest(Halide::Stage nest, const std::vector<Halide::Var> &axes, const std::vector<Halide::Expr> &extents, const Tiles &tiles) {
    schedule_loops(nest, {axes.begin(), axes.end()}, extents, tiles);
}

void schedule_elements(const LoweredKernel &kernel, const KernelOutput &output, const Tiles &tiles) {
    const std::vector<Halide::Expr> extents = bound_loops(kernel, output);
    if (output.joined_axis) return schedule_parts(output, extents, tiles);
    if (!output.func.has_update_definition() && !extents.empty() && moves_elements(kernel.program)) {
        schedule_whole_vectors(output, extents, tiles);
    }
    schedule_nest(loop_nest(output.func), output.func.args(), extents, tiles);
}

} // namespace scalide
