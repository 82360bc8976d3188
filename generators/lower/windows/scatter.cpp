#include "expr/base_operators.h"
#include "lower/formats/formats.h"
#include "lower/math/elementwise.h"
#include "lower/values/outputs.h"
#include "lower/values/windows.h"
#include <algorithm>

// scatter: copies an array, then applies the updates one after the other, in row-major order of the index vectors. If the result overwrites
// the array, nothing is copied. Sums have a fixed order. Batching axes, and axes of the array that every window covers, become loops of
// their own, which can run in parallel. Long lists of integers that are added to a short array, as for a histogram, have blocks with an
// array each, which run in parallel, too.
namespace scalide {
using Halide::Expr;

namespace {

constexpr int block = 4096; ///< updates of a block
/// Each block has two arrays, which take updates in turn, because an addition to an element waits for the one before. With the exponents of
/// normally distributed numbers, an update takes 0.35 ns on a Zen 4 core, and 0.51 ns with one array (2026-11-29).
constexpr int turns = 2;
constexpr int64_t most_counts = 1024; ///< elements of an array that each block has; fewer updates have no blocks

class Scatter {
public:
    Scatter(Lowering &lowering, const Node &node)
        : lowering_(lowering), node_(node), windows_(lowering.values, node), dtype_(type().dtype), vars_(axis_vars(type().rank())) {}

    void lower() {
        const Index here(vars_.begin(), vars_.end());
        func_(buffer_order(vars_)) =
            is_in_place() ? Halide::undef(storage_type(dtype_)) : to_word(dtype_, lowering_.values.at(node_.operands[0], here));
        if (!counts_by_blocks() || !update_blocks()) update();
        fix_layout(func_, type().shape, lowering_.kernel);
        lowering_.kernel.outputs.push_back({func_, {0}});
    }

private:
    const Type &type() const { return lowering_.kernel.program.type(node_.results[0]); }

    /// True if the result overwrites the array, so that the array's buffer holds the old elements already.
    bool is_in_place() const {
        const Program &program = lowering_.kernel.program;
        const int argument = program.results[0].argument;
        return argument >= 0 && program.arguments[size_t(argument)].value == node_.operands[0];
    }

    /// Integer additions may have any order. The schedules of GPUs have no blocks.
    bool counts_by_blocks() const {
        const bool is_sum = base_operator(node_.op).fold == "add" && dtype_ == Dtype::i32 && !is_in_place();
        if (!is_sum || lowering_.target.has_gpu_feature() || type().rank() != 1 || windows_.shape().size() != 1) return false;
        const Extent &updates = windows_.shape()[0];
        if (updates.is_static() && updates.value() < most_counts) return false;
        return !windows_.is_window_axis(0) && type().shape[0].is_static() && type().shape[0].value() <= most_counts;
    }

    /// Returns false if all updates have the same place, for which the compiler of Halide 21 fails.
    bool update_blocks() {
        const Halide::Var part("part"), turn("turn");
        const Expr count = lowering_.values.extent(windows_.shape()[0]), blocks = Halide::Internal::simplify((count + block - 1) / block);
        Halide::Func counts("counts");
        counts(vars_[0], turn, part) = 0;
        Halide::RDom r(0, block / turns);
        const Expr at = part * block + r * turns + turn;
        if (!windows_.shape()[0].divide(block)) r.where(at < count);
        const WindowPlace place = windows_.place({at});
        if (!Halide::Internal::expr_uses_var(place.index[0], r.x.name())) return false;
        r.where(place.inside);
        counts(place.index[0], turn, part) += lowering_.values.at(node_.operands[2], {at});
        const Halide::RDom all(0, turns, 0, blocks);
        func_(vars_[0]) += counts(vars_[0], all.x, all.y);
        auto &stages = lowering_.kernel.stages.emplace<ScatterStages>();
        stages.counts = counts;
        stages.blocks = blocks;
        stages.block = block;
        return true;
    }

    /// Returns the index of an element in the array of windows. An axis is a loop over updates (elements of a window innermost) or an axis
    /// of the result.
    Index make_loops(Halide::RDom &r) {
        const std::vector<int> whole = windows_.whole_axes();
        Halide::Region ranges; // innermost first
        std::vector<int> loop_of(whole.size(), -1);
        for (const bool in_window : {true, false}) {
            for (size_t i = whole.size(); i-- > 0;) {
                if (whole[i] < 0 && windows_.is_window_axis(i) == in_window) {
                    loop_of[i] = int(ranges.size());
                    ranges.emplace_back(0, lowering_.values.extent(windows_.shape()[i]));
                }
            }
        }
        if (ranges.empty()) {
            ranges.emplace_back(0, 1);
        }
        r = Halide::RDom(ranges);
        Index at;
        auto &stages = lowering_.kernel.stages.emplace<ScatterStages>();
        for (size_t i = 0; i < whole.size(); i++) {
            at.push_back(whole[i] < 0 ? Expr(r[loop_of[i]]) : Expr(vars_[size_t(whole[i])]));
            if (whole[i] >= 0) {
                stages.whole.push_back(type().rank() - 1 - whole[i]);
            }
        }
        return at;
    }

    void update() {
        Halide::RDom r;
        const Index at = make_loops(r);
        const WindowPlace place = windows_.place(at);
        for (const Expr &room : place.room) {
            if (!Halide::Internal::is_const(room)) {
                r.where(room > 0);
            }
        }
        r.where(place.inside);
        const std::vector<Expr> target = buffer_order(place.index);
        const Expr update = lowering_.values.at(node_.operands[2], at);
        assign(func_(target), over(r, Halide::Tuple(to_word(dtype_, combined(from_word(dtype_, func_(target)), update)))));
    }

    Expr combined(const Expr &old, const Expr &update) const {
        const std::string_view op = base_operator(node_.op).fold;
        if (op.empty()) {
            return update;
        }
        const ElementwiseOperand operands[] = {{old, dtype_}, {update, dtype_}};
        return lower_elementwise(op, operands, {}, dtype_);
    }

    Lowering &lowering_;
    const Node &node_;
    Windows windows_;
    Dtype dtype_;
    std::vector<Halide::Var> vars_;
    Halide::Func func_{"output_0"};
};

} // namespace

void lower_scatter(Lowering &lowering) {
    const Program &program = lowering.kernel.program;
    const auto is_scatter = [](const Node &node) { return find_base_operator(node.op)->shape == Shape::scatter; };
    const auto node = std::ranges::find_if(program.nodes, is_scatter);
    internal_check(node != program.nodes.end() && program.results.size() == 1 && program.results[0].value == node->results[0],
                   "a scatter kernel must give what a scatter makes");
    Scatter(lowering, *node).lower();
}

} // namespace scalide
