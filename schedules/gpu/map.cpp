#include "expr/base_operators.h"
#include "lower/values/thread_access.h"
#include "schedules/gpu/kinds.h"
#include "schedules/gpu/loops.h"
#include <algorithm>

// map: each thread computes some adjacent elements of each output, in vectors if lines consist of whole vectors. Tiles:
//   threads  threads of a block
//   cost     instructions of a thread above which it gets no more elements
namespace scalide::gpu {
namespace {
using namespace Halide;

std::vector<Expr> values_of(const Func &func) {
    return func.has_update_definition() ? func.update_values().as_vector() : func.values().as_vector();
}

/// Checks that `count` adjacent elements of a result, the first of which is a multiple of `count`, read adjacent elements of arrays, or the
/// same elements. Movement may change all axes but the innermost one: then threads read and write whole vectors. An index that is clamped
/// to a part of an array counts as the index before: a thread writes a vector and reads its elements one by one, mostly from one line of
/// the cache.
class Adjacent : public Internal::IRGraphVisitor {
public:
    Adjacent(const Func &func, int count) : x_(func.args()[0].name()), count_(count) {
        for (const Expr &value : values_of(func)) Internal::substitute_in_all_lets(value).accept(this);
    }
    bool holds() const { return holds_; }
    bool has_bounds() const { return has_bounds_; } ///< an index is clamped

private:
    using IRGraphVisitor::visit;

    void visit(const Internal::Call *call) override {
        const bool is_array = call->call_type == Internal::Call::Image || call->call_type == Internal::Call::Halide;
        for (size_t i = 0; holds_ && is_array && i < call->args.size(); i++) holds_ = is_adjacent(call->args[i], i == 0);
        IRGraphVisitor::visit(call);
    }

    bool is_adjacent(const Expr &clamped, bool may_move) {
        const Expr index = without_bounds(clamped);
        const bool is_bounded = !index.same_as(clamped);
        has_bounds_ = has_bounds_ || is_bounded;
        if (!Internal::expr_uses_var(index, x_)) return true;
        const Expr x = Internal::Variable::make(Int(32), x_);
        const auto at = [&](int lane) { return Internal::substitute(x_, x * count_ + lane, index); };
        // Whether more elements than a thread has are adjacent tells a shifted index from a divided one, as that of interior padding.
        for (int lane = 1; lane < (is_bounded ? array_alignment : count_); lane++) {
            const Expr moved = Internal::simplify(at(lane) - at(0));
            if (!Internal::is_const(moved, may_move ? lane : 0)) return false;
        }
        return true;
    }

    /// Returns the operand of min and max, if the other one does not depend on x.
    Expr without_bounds(const Expr &index) const {
        const auto inner = [this](const auto *op) { return Internal::expr_uses_var(op->b, x_) ? Expr() : without_bounds(op->a); };
        Expr found;
        if (const auto *min = index.as<Internal::Min>()) found = inner(min);
        if (const auto *max = index.as<Internal::Max>()) found = inner(max);
        return found.defined() ? found : index;
    }

    std::string x_;
    int count_;
    bool holds_ = true, has_bounds_ = false;
};

/// True if a thread would have two words. If Halide 21 computes the two elements of a vector one by one, it makes a ramp of them, and adds
/// the difference to the first: a float that is moved would be rounded.
bool makes_pairs(const Program &kernel, const KernelOutput &output, int count) {
    const Type &type = kernel.type(kernel.results[output.results[0]].value);
    const bool is_uneven = type.shape.back().is_static() && type.shape.back().value() % 4 != 0;
    const auto has_words = [&](int result) { return size_of(kernel.type(kernel.results[result].value).dtype) >= 4; };
    return (count == 2 || is_uneven) && std::ranges::any_of(output.results, has_words);
}

/// A thread writes each result by one access, so that the threads of a warp write contiguous memory. Reads may take several accesses, which
/// hit the cache.
int elements_of_thread(const Program &kernel, const KernelOutput &output, const Tiles &tiles) {
    int count = elements_of_access(kernel, output.results), cost = 1;
    for (const Node &node : kernel.nodes) cost += operator_cost(node.op);
    if (output.func.args().empty()) return 1;
    while (count > 1 && count * cost > tiles.at("cost")) count /= 2;
    if (!moves_elements(kernel)) return count;
    while (count > 1 && !Adjacent(output.func, count).holds()) count /= 2;
    return count > 1 && Adjacent(output.func, count).has_bounds() && makes_pairs(kernel, output, count) ? 1 : count;
}

/// Uses whole vectors. A static line gets shorter vectors if only these divide it. A symbolic line that may or may not be a multiple gets
/// two versions of the loop.
void schedule_vectors(const LoweredKernel &kernel, const KernelOutput &output, int width, bool is_cuda, const Tiles &tiles) {
    const std::vector<Expr> extents = bound_loops(kernel, output);
    const std::vector<Var> loops = output.func.args();
    const auto rest_of = [&] { return Internal::simplify(extents[0] % width); };
    while (Internal::is_const(rest_of()) && !Internal::is_const_zero(rest_of())) width /= 2;
    const Expr rest = rest_of();
    Stage nest = loop_nest(output.func);
    Stage vectors = Internal::is_const_zero(rest) ? nest : nest.specialize(rest == 0);
    Var lane("lane");
    vectors.split(loops[0], loops[0], lane, width, TailStrategy::RoundUp);
    // Halide 21 fails for conditional f64 vectors in OpenCL C. LLVM does not merge adjacent accesses that are not vectors.
    is_cuda ? vectors.vectorize(lane) : vectors.unroll(lane);
    spread(vectors, loops, tiles.at("threads"));
    // Halide would split the loop over blocks where a part begins. The host would then read the offset, which is data of the device.
    if (moves_elements(kernel.program)) vectors.never_partition_all();
    if (!Internal::is_const_zero(rest)) spread(nest, loops, tiles.at("threads"));
}

} // namespace

void schedule_map(LoweredKernel &kernel, const Tiles &tiles, const Target &target) {
    for (const Func &stage : kernel.shared) keep(stage, tiles);
    align_arrays(kernel);
    for (const KernelOutput &output : kernel.outputs) {
        const int width = elements_of_thread(kernel.program, output, tiles);
        if (width > 1) {
            schedule_vectors(kernel, output, width, target.has_feature(Target::CUDA), tiles);
        } else {
            schedule_elements(kernel, output, tiles);
        }
    }
}

} // namespace scalide::gpu
