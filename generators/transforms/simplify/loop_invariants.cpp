#include "transforms/simplify/loop_invariants.h"
#include "expr/base_operators.h"
#include "ir/regions.h"
#include "transforms/analysis/costs.h"
#include "transforms/analysis/operators.h"
#include "transforms/analysis/splice.h"
#include <algorithm>
#include <map>

namespace scalide {

namespace {

/// An invariant array may take so many times the bytes of the captures that it depends on. A larger one costs more to read in each step
/// than to compute.
constexpr double largest_growth = 2;

/// Finds the values of a body that are the same in each step, and copies their nodes before the loop.
class Invariants {
public:
    explicit Invariants(RegionEdit &edit)
        : edit_(edit), body_(edit.body()), sizes_(edit.builder.program()), bytes_(body_.values.size(), -1), makers_(producers(body_)) {
        for (size_t i = 0; i < edit.argument_count(); i++) {
            const ValueId argument = body_.arguments[i].value;
            if (!edit.is_capture(i)) continue;
            at(argument) = sizes_.bytes(body_.type(argument));
            outside_[argument] = edit.operand(i);
        }
        for (const Node &node : body_.nodes) learn(node);
    }

    bool holds(ValueId value) const { return bytes_[static_cast<size_t>(value)] >= 0; }

    /// True for a node that is worth an array that the loop reads.
    bool should_move(const Node &node) const {
        const bool is_known = node.results.size() == 1 && holds(node.results[0]);
        const BaseOperator *op = find_base_operator(node.op);
        if (!is_known || op == nullptr || op->shape == Shape::movement || op->shape == Shape::source || is_decoding(body_, node))
            return false;
        const Type &type = body_.type(node.results[0]);
        return sum_of_operands(node) > 0 && (type.is_scalar() || sizes_.bytes(type) <= largest_growth * sum_of_operands(node));
    }

    /// Returns the value before the loop that is `value`.
    ValueId outside(ValueId value) {
        if (const auto found = outside_.find(value); found != outside_.end()) return found->second;
        Node node = body_.nodes[static_cast<size_t>(makers_[static_cast<size_t>(value)])];
        for (ValueId &operand : node.operands) operand = outside(operand);
        Program &program = edit_.builder.program();
        node.results = {add_value(program, body_.value_name(value), body_.type(value), body_.values[static_cast<size_t>(value)].part)};
        program.nodes.push_back(std::move(node));
        return outside_[value] = program.nodes.back().results[0];
    }

private:
    double &at(ValueId value) { return bytes_[static_cast<size_t>(value)]; }

    /// Nodes that only compute: they are right without any step, and need no least extent of an axis.
    static bool only_computes(const Node &node) {
        const BaseOperator *op = find_base_operator(node.op);
        if (op == nullptr || node.results.size() != 1 || op->reads_indices || op->gives_place) return false;
        constexpr Shape walks[] = {Shape::elementwise, Shape::movement, Shape::source, Shape::reduce, Shape::scan, Shape::contract};
        return std::ranges::find(walks, op->shape) != std::end(walks);
    }

    void learn(const Node &node) {
        if (!only_computes(node) || !std::ranges::all_of(node.operands, [&](ValueId operand) { return holds(operand); })) return;
        at(node.results[0]) = std::min(sum_of_operands(node), sizes_.bytes(body_.type(node.results[0])));
    }

    /// The bytes of the captures on which a node depends; 0 if it depends on none.
    double sum_of_operands(const Node &node) const {
        double sum = 0;
        for (const ValueId operand : node.operands) sum += bytes_[static_cast<size_t>(operand)];
        return sum;
    }

    RegionEdit &edit_;
    const Program &body_;
    NominalSizes sizes_;
    std::vector<double> bytes_; ///< by value: bytes of captures, for an invariant; -1 for another value
    std::vector<int> makers_;
    std::map<ValueId, ValueId> outside_;
};

/// Returns the invariant values that should leave: what other nodes read of them.
std::vector<ValueId> leaving_values(const Program &body, const Invariants &invariants) {
    std::vector<bool> is_needed(body.values.size(), false);
    for (const Result &result : body.results) is_needed[static_cast<size_t>(result.value)] = true;
    std::vector<ValueId> leaving;
    for (size_t i = body.nodes.size(); i-- > 0;) {
        const Node &node = body.nodes[i];
        const bool is_read = std::ranges::any_of(node.results, [&](ValueId result) { return is_needed[static_cast<size_t>(result)]; });
        if (is_read && invariants.should_move(node)) {
            leaving.push_back(node.results[0]);
        } else if (is_read) {
            for (const ValueId operand : node.operands) is_needed[static_cast<size_t>(operand)] = true;
        }
    }
    return leaving;
}

/// Returns the attributes of a broadcast without its first axis, if all rows of its result are equal.
std::optional<Attributes> attributes_of_row(const Node &broadcast, const Extents &shape) {
    std::vector<int64_t> axes = broadcast_axes(broadcast);
    if (std::ranges::count(axes, 0) > 0) return {};
    for (int64_t &axis : axes) axis--;
    return broadcast_attributes({shape.begin() + 1, shape.end()}, axes);
}

bool counts_up(const RegionEdit &edit, const Node &maker) {
    return maker.op == "iota" && edit.builder.type(maker.results[0]).shape.size() == 1 &&
           edit.builder.type(maker.results[0]).dtype == Dtype::i32;
}

/// Adds the stack of a value of the body before the loop; empty if it is not known.
std::optional<ValueId> known_stack(RegionEdit &edit, Invariants &invariants, ValueId value) {
    for (size_t i = 0; i < edit.argument_count(); i++) {
        const Argument &argument = edit.body().arguments[i];
        if (argument.value != value) continue;
        if (argument.supply == Supply::each) return edit.operand(i);
        if (argument.supply == Supply::step) return edit.step_numbers();
    }
    if (!invariants.holds(value)) return {};
    const ValueId row = invariants.outside(value);
    const Type type = edit.builder.type(row);
    std::vector<int64_t> axes = count_up(type.rank());
    for (int64_t &axis : axes) axis++;
    const Extents shape = stacked(type, edit.node.attributes.at("length").integer).shape;
    return edit.builder.add_one("broadcast_in_dim", {row}, broadcast_attributes(shape, axes));
}

} // namespace

bool move_constants_in(RegionEdit &edit) {
    bool has_changed = false;
    for (size_t i = edit.argument_count(); i-- > 0;) {
        const Argument &argument = edit.body().arguments[i];
        if (argument.inout || argument.supply == Supply::step) continue;
        const Type type = edit.body().type(argument.value);
        const std::optional<double> number = edit.facts.splat(edit.operand(i));
        if (!number || is_narrow(type.dtype)) continue;
        for (Program &region : edit.regions)
            edit.replace_argument(region, i, [&](Builder &builder, ValueId) {
                const ValueId scalar = builder.constant(*number, type.dtype);
                return type.is_scalar() ? scalar : builder.add_one("broadcast_in_dim", {scalar}, broadcast_attributes(type.shape, {}));
            });
        edit.drop_argument(i);
        has_changed = true;
    }
    return has_changed;
}

bool replace_known_elements(RegionEdit &edit) {
    bool has_changed = false;
    for (size_t i = 0; i < edit.argument_count(); i++) {
        if (edit.body().arguments[i].supply != Supply::each) continue;
        const ValueId operand = edit.operand(i);
        const Node *maker = edit.facts.producer(operand);
        if (maker == nullptr) continue;
        if (counts_up(edit, *maker)) {
            edit.make_step(i);
            has_changed = true;
        } else if (maker->op == "broadcast_in_dim") {
            const std::optional<Attributes> row = attributes_of_row(*maker, edit.builder.type(operand).shape);
            if (!row) continue;
            edit.make_capture(i, maker->operands[0]);
            edit.replace_argument(
                edit.body(), i, [&](Builder &builder, ValueId argument) { return builder.add_one("broadcast_in_dim", {argument}, *row); });
            has_changed = true;
        }
    }
    return has_changed;
}

bool give_known_stacks(RegionEdit &edit) {
    if (!edit.runs_all_steps()) return false;
    std::vector<std::pair<size_t, ValueId>> known;
    Invariants invariants(edit);
    for (size_t r = edit.result_count(); r-- > 0;) {
        const Result &result = edit.body().results[r];
        if (result.argument >= 0) continue;
        if (const auto stack = known_stack(edit, invariants, result.value)) known.emplace_back(r, *stack);
    }
    for (const auto &[result, stack] : known) edit.give(result, stack);
    return !known.empty();
}

bool move_invariants_out(RegionEdit &edit) {
    if (!edit.is_loop()) return false;
    Invariants invariants(edit);
    std::vector<std::pair<ValueId, ValueId>> moved;
    for (const ValueId value : leaving_values(edit.body(), invariants)) moved.emplace_back(value, invariants.outside(value));
    for (const auto &[value, outside] : moved) {
        const std::string name = edit.body().value_name(value);
        const size_t argument = edit.add_capture(outside, name);
        replace_value(edit.body(), value, edit.body().arguments[argument].value);
    }
    return !moved.empty();
}

} // namespace scalide
