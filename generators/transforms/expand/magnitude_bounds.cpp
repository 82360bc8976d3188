#include "transforms/expand/magnitude_bounds.h"
#include "ir/rewrite.h"
#include "rulebook/builder.h"
#include "transforms/operators.h"
#include "transforms/simplify/facts.h"
#include <algorithm>

namespace scalide {

namespace {

using Bound = std::optional<ValueId>; ///< rank 0, f32

class Bounds {
public:
    Bounds(const Program &source, const Rulebook &rulebook)
        : rewriter_(source), builder_(rulebook, rewriter_.result()), facts_(rewriter_.result()) {}

    Program run() {
        rewriter_.copy_arguments();
        for (const Node &node : rewriter_.source().nodes) {
            if (node.op != "norm_bound") {
                rewriter_.copy(node);
                continue;
            }
            builder_.stamp_like(node);
            const ValueId value = rewriter_(node.operands[0]);
            const Bound bound = bound_of(value);
            rewriter_.map(node.results[0], bound ? *bound : largest(value));
        }
        rewriter_.copy_results();
        return remove_dead_nodes(rewriter_.take());
    }

private:
    const Type &type(ValueId value) const { return builder_.type(value); }

    ValueId largest(ValueId value) {
        const ValueId magnitudes = builder_.add_one("abs", {value});
        return builder_.add_one("reduce_max", {magnitudes}, reduce_attributes(count_up(type(value).rank())));
    }

    /// Operands first, without recursion: a chain of nodes may be longer than a stack is deep.
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

    /// None while it is not known: then `find` adds no node and is asked again.
    Bound known(ValueId value) {
        const auto found = bounds_.find(value);
        if (found == bounds_.end()) missing_.push_back(value);
        return found == bounds_.end() ? Bound() : found->second;
    }

    Bound find(ValueId value) {
        if (comes_from_argument(value)) return largest(value);
        const Node *found = facts_.producer(value);
        if (found == nullptr) return {};
        const Node node = *found; // nodes are added on the way
        if (moves_one_array(node) || node.op == "neg" || node.op == "abs") return known(node.operands[0]);
        if (node.op == "add" || node.op == "sub") return sum(node);
        if (node.op == "mul" || node.op == "div") return scaled(node);
        return node.op == "dot_general" ? product(node) : Bound();
    }

    /// Elements of an argument, widened, moved, times and over rank-0 numbers: whoever needs them reads memory alone.
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

    Bound sum(const Node &node) {
        const Bound a = known(node.operands[0]), b = known(node.operands[1]);
        return a && b ? Bound(builder_.add_one("add", {*a, *b})) : Bound();
    }

    Bound scaled(const Node &node) {
        size_t by = 1;
        if (node.op == "mul" && facts_.scalar_source(node.operands[1]) < 0) by = 0;
        const ValueId factor = facts_.scalar_source(node.operands[by]);
        if (factor < 0 || type(factor).dtype != Dtype::f32) return {};
        const Bound bound = known(node.operands[1 - by]);
        return bound ? Bound(builder_.add_one(node.op, {*bound, builder_.add_one("abs", {factor})})) : Bound();
    }

    Bound product(const Node &dot) {
        double codes = 1;
        for (const ValueId operand : dot.operands) {
            const Dtype stored = stored_dtype(operand);
            if (!is_narrow(stored)) return {};
            codes *= decode(format_of(stored), format_of(stored).max_code);
        }
        Extent terms(1);
        for (const int64_t axis : dot_axes(dot).lhs_contract) terms = terms * type(dot.operands[0]).shape[axis];
        return builder_.add_one("mul", {builder_.size(terms), builder_.constant(codes)});
    }

    /// The dtype of the codes that were widened to `value`; its own when there are none.
    Dtype stored_dtype(ValueId value) {
        for (const Node *node = facts_.producer(value);; node = facts_.producer(value)) {
            const bool widens = node != nullptr && node->op == "convert_element_type";
            if (node == nullptr || (!widens && !moves_one_array(*node))) return type(value).dtype;
            const Dtype from = type(node->operands[0]).dtype;
            if (is_narrow(from)) return from;
            if (widens) return type(value).dtype;
            value = node->operands[0];
        }
    }

    Rewriter rewriter_;
    Builder builder_;
    Facts facts_;
    std::map<ValueId, Bound> bounds_;
    std::map<ValueId, bool> from_argument_;
    std::vector<ValueId> missing_; ///< bounds that `find` has asked for and that are not known
};

} // namespace

Program bound_magnitudes(const Program &program, const Rulebook &rulebook) {
    const bool has_any = std::ranges::any_of(program.nodes, [](const Node &node) { return node.op == "norm_bound"; });
    return has_any ? Bounds(program, rulebook).run() : program;
}

} // namespace scalide
