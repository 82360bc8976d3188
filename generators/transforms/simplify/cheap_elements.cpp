#include "transforms/simplify/cheap_elements.h"
#include "expr/base_operators.h"
#include "ir/regions.h"
#include "transforms/analysis/costs.h"
#include <algorithm>
#include <map>

namespace scalide {

namespace {

/// An element of a stack is read from memory once. So few nodes of so little cost are faster.
constexpr int most_recomputed = 8, most_recomputed_cost = 4;

/// The values in the body of `reader` that equal values of the body of an earlier loop, and the nodes that compute others from them.
class Recomputation {
public:
    /// `stack`: the argument of the reader that is to be computed, result `result` of `writer`.
    Recomputation(const RegionEdit &reader, const Node &writer, size_t stack, size_t result)
        : body_(*writer.regions.back()), makers_(producers(body_)), wanted_(body_.results[result].value) {
        const LoopView view(writer);
        for (size_t i = 0; i < reader.argument_count(); i++) {
            const Argument &argument = reader.body().arguments[i];
            if (i == stack || argument.inout) continue;
            if (argument.supply == Supply::each) add_results(writer, reader.operand(i), argument.value);
            for (size_t j = 0; j < body_.arguments.size(); j++) {
                const Argument &known = body_.arguments[j];
                const bool is_same =
                    argument.supply == Supply::step || (view.operands[j] >= 0 && writer.operands[view.operands[j]] == reader.operand(i));
                if (known.supply == argument.supply && !known.inout && is_same) known_[known.value] = argument.value;
            }
        }
    }

    bool is_possible() { return can_compute(wanted_) && !nodes_.empty(); }

    /// Adds the nodes to the reader's body. Returns the element.
    ValueId add(Builder &builder) {
        for (const int index : nodes_) {
            const Node &node = body_.nodes[index];
            std::vector<ValueId> operands;
            for (const ValueId operand : node.operands) operands.push_back(known_.at(operand));
            builder.stamp_like(node);
            known_[node.results[0]] = builder.add_one(node.op, operands, node.attributes);
        }
        return known_.at(wanted_);
    }

private:
    void add_results(const Node &writer, ValueId operand, ValueId element) {
        for (size_t r = 0; r < writer.results.size(); r++)
            if (writer.results[r] == operand && body_.results[r].argument < 0) known_[body_.results[r].value] = element;
    }

    static bool is_cheap(const Program &program, const Node &node) {
        const BaseOperator *op = find_base_operator(node.op);
        if (op == nullptr || node.results.size() != 1 || is_rounding(program, node)) return false;
        return op->shape == Shape::source || node.op == "broadcast_in_dim" ||
               (op->shape == Shape::elementwise && op->cost <= most_recomputed_cost);
    }

    bool can_compute(ValueId value) {
        if (known_.contains(value)) return true;
        if (makers_[value] < 0 || !is_cheap(body_, body_.nodes[makers_[value]])) return false;
        const std::vector<ValueId> &operands = body_.nodes[makers_[value]].operands;
        if (!std::ranges::all_of(operands, [&](ValueId operand) { return can_compute(operand); })) return false;
        if (std::ranges::count(nodes_, makers_[value]) == 0) nodes_.push_back(makers_[value]);
        return nodes_.size() <= most_recomputed;
    }

    const Program &body_;
    std::vector<int> makers_;
    const ValueId wanted_;
    std::map<ValueId, ValueId> known_; ///< the value of the reader, by the value of the writer
    std::vector<int> nodes_;           ///< of the writer's body, in order
};

} // namespace

bool compute_cheap_elements(RegionEdit &edit) {
    if (!edit.is_loop()) return false;
    bool has_changed = false;
    for (size_t i = edit.argument_count(); i-- > 0;) {
        if (edit.body().arguments[i].supply != Supply::each) continue;
        const Node *maker = edit.facts.producer(edit.operand(i));
        if (maker == nullptr || maker->op != "scan" || maker->attributes.contains("count")) continue;
        const Node writer = *maker;
        const auto result = static_cast<size_t>(std::ranges::find(writer.results, edit.operand(i)) - writer.results.begin());
        if (writer.regions.back()->results[result].argument >= 0) continue;
        Recomputation recomputation(edit, writer, i, result);
        if (!recomputation.is_possible()) continue;
        edit.replace_argument(edit.body(), i, [&](Builder &builder, ValueId) { return recomputation.add(builder); });
        edit.drop_argument(i);
        has_changed = true;
    }
    return has_changed;
}

} // namespace scalide
