#include "transforms/expand/magnitude_bounds.h"
#include "ir/rewrite.h"
#include "rulebook/builder.h"
#include "transforms/analysis/operators.h"
#include "transforms/analysis/splice.h"
#include "transforms/simplify/facts.h"
#include <algorithm>
#include <cmath>

namespace scalide {

namespace {

constexpr ValueId nothing = -1;

/// A bound as the sum of two rank-0 f32 values. A missing summand is `nothing`.
struct Parts {
    ValueId arrays = nothing;   ///< bound of argument elements
    ValueId products = nothing; ///< bound of sums of products
};

using Bound = std::optional<Parts>;

class Bounds {
public:
    Bounds(const Program &source, const Rulebook &rulebook)
        : rewriter_(source), builder_(rulebook, rewriter_.result()), facts_(rewriter_.result()) {}

    Program run() {
        rewriter_.copy_arguments();
        for (const Node &node : rewriter_.source().nodes) {
            if (is_bound(node)) {
                builder_.stamp_like(node);
                rewriter_.map(node.results[0], norm(node));
            } else {
                rewriter_.copy(node);
            }
            learn_largest();
        }
        rewriter_.copy_results();
        return remove_dead_nodes(rewriter_.take());
    }

private:
    const Type &type(ValueId value) const { return builder_.type(value); }

    ValueId norm(const Node &node) {
        const ValueId value = rewriter_(node.operands[0]);
        const Bound bound = bound_of(value);
        if (!bound) return largest(value);
        if (node.op == "norm_bound" || bound->products == nothing) return added(bound->arrays, bound->products);
        const ValueId arrays = bound->arrays == nothing ? builder_.constant(0) : bound->arrays;
        const Node limited{"limited_norm", {arrays, bound->products, largest(rewriter_(node.operands[1]))}, node.attributes};
        return expand_value(builder_, limited)[0];
    }

    /// Records which of the newly added nodes compute an amax, and of which value.
    void learn_largest() {
        const Program &made = rewriter_.result();
        for (; nodes_seen_ < made.nodes.size(); nodes_seen_++) {
            const Node &node = made.nodes[nodes_seen_];
            if (node.op != "reduce_max" || !type(node.results[0]).is_scalar()) continue;
            const Node *magnitude = facts_.producer(node.operands[0], "abs");
            const bool is_magnitude = magnitude != nullptr || facts_.never_negative(node.operands[0]);
            if (is_magnitude) largest_.try_emplace(magnitude != nullptr ? magnitude->operands[0] : node.operands[0], node.results[0]);
        }
    }

    ValueId largest(ValueId value) {
        if (const auto found = largest_.find(value); found != largest_.end()) return found->second;
        const ValueId magnitudes = builder_.add_one("abs", {value});
        return builder_.add_one("reduce_max", {magnitudes}, reduce_attributes(count_up(type(value).rank())));
    }

    /// Computes bounds of operands first. It does not recurse, because a chain of nodes may be longer than the stack is deep.
    Bound bound_of(ValueId value) {
        std::vector<ValueId> todo{value};
        while (!todo.empty()) {
            const ValueId at = todo.back();
            missing_.clear();
            const Bound bound = bounds_.contains(at) ? bounds_.at(at) : find(at);
            if (missing_.empty()) {
                bounds_.emplace(at, bound);
                todo.pop_back();
            }
            todo.insert(todo.end(), missing_.rbegin(), missing_.rend());
        }
        return bounds_.at(value);
    }

    /// Returns nothing if the bound is not known yet. `find` then adds no node and is called again later.
    Bound known(ValueId value) {
        const auto found = bounds_.find(value);
        if (found == bounds_.end()) missing_.push_back(value);
        return found == bounds_.end() ? Bound() : found->second;
    }

    Bound find(ValueId value) {
        if (comes_from_argument(value)) return Parts{largest(value), nothing};
        const Node *found = facts_.producer(value);
        if (found == nullptr) return {};
        const Node node = *found; // a copy, because nodes are added below
        if (moves_one_array(node) || node.op == "neg" || node.op == "abs") return known(node.operands[0]);
        if (node.op == "add" || node.op == "sub") return sum(node);
        if (node.op == "mul" || node.op == "div") return scaled(node);
        return node.op == "dot_general" ? product(node) : Bound();
    }

    /// True for elements of an argument that are widened, moved, or multiplied or divided by scalars. Computing their amax reads memory and
    /// needs no other kernel.
    bool comes_from_argument(ValueId value) {
        std::vector<ValueId> behind;
        std::optional<bool> comes;
        for (ValueId at = value;; at = facts_.producer(at)->operands[0]) {
            const auto seen = from_argument_.find(at);
            const Node *node = facts_.producer(at);
            behind.push_back(at);
            if (seen != from_argument_.end())
                comes = seen->second;
            else if (node == nullptr)
                comes = !type(at).is_scalar();
            else if (!keeps_elements(*node))
                comes = false;
            if (comes) break;
        }
        for (const ValueId each : behind) from_argument_[each] = *comes;
        return *comes;
    }

    bool keeps_elements(const Node &node) {
        const bool is_scaled = (node.op == "mul" || node.op == "div") && facts_.scalar_source(node.operands[1]) >= 0;
        return is_scaled || moves_one_array(node) || (node.op == "convert_element_type" && is_narrow(type(node.operands[0]).dtype));
    }

    ValueId added(ValueId a, ValueId b) {
        if (a == nothing || b == nothing) return a == nothing ? b : a;
        return builder_.add_one("add", {a, b});
    }

    Bound sum(const Node &node) {
        const Bound a = known(node.operands[0]), b = known(node.operands[1]);
        if (!a || !b) return {};
        return Parts{added(a->arrays, b->arrays), added(a->products, b->products)};
    }

    Bound scaled(const Node &node) {
        size_t by = 1;
        if (node.op == "mul" && facts_.scalar_source(node.operands[1]) < 0) by = 0;
        const ValueId factor = facts_.scalar_source(node.operands[by]);
        if (factor < 0 || type(factor).dtype != Dtype::f32) return {};
        const Bound bound = known(node.operands[1 - by]);
        if (!bound) return {};
        const ValueId magnitude = builder_.add_one("abs", {factor});
        const auto times = [&](ValueId part) { return part == nothing ? nothing : builder_.add_one(node.op, {part, magnitude}); };
        return Parts{times(bound->arrays), times(bound->products)};
    }

    Bound product(const Node &dot) {
        if (type(dot.results[0]).dtype != Dtype::f32) return {};
        const auto lhs = known_largest(dot.operands[0]);
        const auto rhs = lhs ? known_largest(dot.operands[1]) : std::nullopt;
        if (!rhs) return {};
        Extent terms(1);
        for (const int64_t axis : dot_axes(dot).lhs_contract) terms = terms * type(dot.operands[0]).shape[axis];
        return Parts{nothing, builder_.add_one("mul", {builder_.size(terms), builder_.add_one("mul", {*lhs, *rhs})})};
    }

    /// An array from which an operand comes: each element times `factors`, rounded to formats. `rounding` bounds the relative increase by
    /// rounding.
    struct Origin {
        ValueId array;
        std::vector<ValueId> factors;
        double rounding;
    };

    /// Returns the amax of an operand. It is derived from an amax that the program already computes, otherwise from the argument from which
    /// the operand comes.
    std::optional<ValueId> known_largest(ValueId operand) {
        std::optional<Origin> argument;
        Origin origin{operand, {}, 1};
        while (!largest_.contains(origin.array)) {
            if (!argument && comes_from_argument(origin.array)) argument = origin;
            if (!step_back(origin)) return argument ? std::optional(largest(*argument)) : std::nullopt;
        }
        return largest(origin);
    }

    /// Returns false if the array is computed in another way, or is an argument.
    bool step_back(Origin &origin) {
        const Node *node = facts_.producer(origin.array);
        if (node == nullptr || type(origin.array).dtype == Dtype::f64) return false;
        size_t from = 0;
        if (node->op == "mul") {
            from = facts_.scalar_source(node->operands[1]) < 0 ? 1 : 0;
            const ValueId factor = facts_.scalar_source(node->operands[1 - from]);
            if (factor < 0) return false;
            origin.factors.push_back(factor);
        } else if (node->op == "convert_element_type") {
            if (!is_float(type(node->operands[0]).dtype)) return false;
            const Dtype to = type(origin.array).dtype;
            if (is_narrow(to)) origin.rounding *= 1 + std::ldexp(1.0, -format_of(to).mantissa_bits);
        } else if (!moves_one_array(*node) && node->op != "neg") {
            return false;
        }
        origin.array = node->operands[from];
        return true;
    }

    ValueId largest(const Origin &origin) {
        ValueId number = largest(origin.array);
        for (const ValueId factor : origin.factors) number = builder_.add_one("mul", {number, builder_.add_one("abs", {factor})});
        return origin.rounding == 1 ? number : builder_.add_one("mul", {number, builder_.constant(origin.rounding)});
    }

    Rewriter rewriter_;
    Builder builder_;
    Facts facts_;
    std::map<ValueId, Bound> bounds_;
    std::map<ValueId, bool> from_argument_;
    std::map<ValueId, ValueId> largest_; ///< by value: its amax, if the program computes it
    size_t nodes_seen_ = 0;              ///< nodes that learn_largest() has visited
    std::vector<ValueId> missing_;       ///< values whose unknown bounds `find` has asked for
};

} // namespace

bool is_bound(const Node &node) { return node.op == "norm_bound" || node.op == "norm_of_state"; }

Program bound_magnitudes(const Program &program, const Rulebook &rulebook) {
    const bool has_any = std::ranges::any_of(program.nodes, is_bound);
    return has_any ? Bounds(program, rulebook).run() : program;
}

} // namespace scalide
