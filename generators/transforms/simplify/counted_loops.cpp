#include "transforms/simplify/counted_loops.h"
#include "transforms/analysis/step_counts.h"
#include <algorithm>
#include <limits>

namespace scalide {

namespace {

/// The test i < n: the argument that is i, and a value of the test that is n.
struct Bound {
    size_t counter;
    ValueId limit;
};

std::optional<size_t> argument_of(const Program &region, ValueId value) {
    const auto found = std::ranges::find(region.arguments, value, &Argument::value);
    return found == region.arguments.end() ? std::nullopt : std::optional(static_cast<size_t>(found - region.arguments.begin()));
}

std::optional<Bound> find_bound(const RegionEdit &edit) {
    const Program &test = edit.regions[0];
    Facts facts(test);
    const Node *node = facts.producer(test.results[0].value);
    if (node == nullptr || (node->op != "lt" && node->op != "gt")) return {};
    const ValueId counter = node->operands[node->op == "lt" ? 0 : 1], limit = node->operands[node->op == "lt" ? 1 : 0];
    const std::optional<size_t> argument = argument_of(test, counter);
    if (!argument || !edit.body().arguments[*argument].inout || test.type(counter) != Type{Dtype::i32, {}}) return {};
    const std::optional<size_t> captured = argument_of(test, limit);
    const bool is_fixed = captured ? edit.is_capture(*captured) : facts.splat(limit).has_value();
    return is_fixed ? std::optional(Bound{*argument, limit}) : std::nullopt;
}

bool adds_one(const Program &body, ValueId before, ValueId after) {
    Facts facts(body);
    const Node *add = facts.producer(after, "add");
    if (add == nullptr) return false;
    const bool is_first = add->operands[0] == before;
    return add->operands[is_first ? 0 : 1] == before && facts.splat(add->operands[is_first ? 1 : 0]) == 1;
}

/// Adds max(limit - start, 0) before the node.
ValueId add_count(RegionEdit &edit, ValueId start, ValueId limit) {
    const std::optional<double> first = edit.facts.splat(start), last = edit.facts.splat(limit);
    constexpr double most = std::numeric_limits<int32_t>::max();
    if (first && last) return edit.builder.constant(std::clamp(*last - *first, 0.0, most), Dtype::i32);
    return steps_between(edit.builder, start, limit);
}

} // namespace

bool count_steps(RegionEdit &edit) {
    if (edit.node.op != "while" || edit.node.attributes.contains("max_steps")) return false;
    const std::optional<Bound> bound = find_bound(edit);
    if (!bound) return false;
    const Argument &counter = edit.body().arguments[bound->counter];
    const auto carry = std::ranges::find(edit.body().results, static_cast<int>(bound->counter), &Result::argument);
    if (!adds_one(edit.body(), counter.value, carry->value)) return false;

    const ValueId start = edit.operand(bound->counter);
    const std::optional<size_t> captured = argument_of(edit.regions[0], bound->limit);
    const ValueId limit =
        captured ? edit.operand(*captured) : edit.builder.constant(*Facts(edit.regions[0]).splat(bound->limit), Dtype::i32);
    const ValueId count = add_count(edit, start, limit);
    edit.give(static_cast<size_t>(carry - edit.body().results.begin()), edit.builder.add_one("max", {start, limit}));
    edit.regions.erase(edit.regions.begin());
    edit.node.op = "scan";
    edit.node.attributes["count"] = std::string("true");
    edit.node.operands.insert(edit.node.operands.begin(), count);
    const ValueId step = add_value(edit.body(), "step", {Dtype::i32, {}});
    edit.replace_argument(edit.body(), bound->counter, [&](Builder &builder, ValueId first) {
        return builder.add_one("add", {first, step});
    });
    edit.body().arguments.push_back({.value = step, .supply = Supply::step});
    return true;
}

} // namespace scalide
