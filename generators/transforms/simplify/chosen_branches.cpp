#include "transforms/simplify/chosen_branches.h"
#include "ir/regions.h"
#include "ir/text.h"
#include "transforms/analysis/operators.h"
#include "transforms/analysis/splice.h"
#include <algorithm>

namespace scalide {

namespace {

/// The static number of the steps of a scan.
std::optional<int64_t> static_steps(const RegionEdit &edit) {
    if (!edit.runs_all_steps()) return {};
    const Extent &length = edit.node.attributes.at("length").integer;
    return length.is_static() ? std::optional(length.value()) : std::nullopt;
}

/// Adds the nodes of a region before the node. They have their scopes and roles already.
std::vector<ValueId> append_region(RegionEdit &edit, const Program &region, std::vector<ValueId> arguments) {
    return append_body(edit.builder.program(), region, {.op = edit.node.op, .operands = std::move(arguments)});
}

void give_all(RegionEdit &edit, const std::vector<ValueId> &values) {
    for (size_t r = values.size(); r-- > 0;) edit.give(r, values[r]);
}

bool are_equal_branches(const RegionEdit &edit) {
    const std::string first = to_string(canonical(edit.regions[0]));
    return std::ranges::all_of(edit.regions, [&](const Program &branch) { return to_string(canonical(branch)) == first; });
}

} // namespace

bool inline_chosen_branch(RegionEdit &edit) {
    if (edit.node.op != "switch") return false;
    const auto last = static_cast<double>(edit.regions.size()) - 1;
    const std::optional<double> index = edit.facts.splat(edit.node.operands[0]);
    if (!index && !are_equal_branches(edit)) return false;
    const auto chosen = static_cast<size_t>(std::clamp(index.value_or(0), 0.0, last));
    give_all(edit, append_region(edit, edit.regions[chosen], {edit.node.operands.begin() + 1, edit.node.operands.end()}));
    return true;
}

bool give_common_captures(RegionEdit &edit) {
    if (edit.node.op != "switch") return false;
    bool has_changed = false;
    for (size_t r = edit.result_count(); r-- > 0;) {
        for (size_t i = 0; i < edit.argument_count(); i++) {
            const auto returns_it = [&](const Program &branch) { return branch.results[r].value == branch.arguments[i].value; };
            if (!std::ranges::all_of(edit.regions, returns_it)) continue;
            edit.give(r, edit.operand(i));
            has_changed = true;
            break;
        }
    }
    return has_changed;
}

bool settle_count(RegionEdit &edit) {
    if (edit.node.op != "scan" || !has_flag(edit.node, "count")) return false;
    const std::optional<double> count = edit.facts.splat(edit.node.operands[0]);
    if (!count) return false;
    const auto steps = std::max<int64_t>(static_cast<int64_t>(*count), 0);
    const auto length = edit.node.attributes.find("length");
    const bool has_length = length != edit.node.attributes.end();
    if (has_length && !(length->second.integer.is_static() && length->second.integer.value() <= steps)) return false;
    if (!has_length) edit.node.attributes["length"] = Extent(steps);
    edit.node.attributes.erase("count");
    edit.node.operands.erase(edit.node.operands.begin());
    return true;
}

bool give_start_without_steps(RegionEdit &edit) {
    if (static_steps(edit) != 0) return false;
    for (size_t r = edit.result_count(); r-- > 0;) {
        const Result &result = edit.body().results[r];
        if (result.argument >= 0) {
            edit.give(r, edit.operand(static_cast<size_t>(result.argument)));
            continue;
        }
        Type type = edit.body().type(result.value);
        type.shape.insert(type.shape.begin(), 0);
        const ValueId zero = edit.builder.constant(0, type.dtype);
        edit.give(r, edit.builder.add_one("broadcast_in_dim", {zero}, broadcast_attributes(type.shape, {})));
    }
    return true;
}

bool inline_single_step(RegionEdit &edit) {
    if (static_steps(edit) != 1) return false;
    std::vector<ValueId> arguments;
    for (size_t i = 0; i < edit.argument_count(); i++) {
        const Argument &argument = edit.body().arguments[i];
        if (argument.supply == Supply::step) {
            arguments.push_back(edit.builder.constant(0, Dtype::i32));
        } else if (argument.supply == Supply::each) {
            const Attributes shape = reshape_attributes(edit.body().type(argument.value).shape);
            arguments.push_back(edit.builder.add_one("reshape", {edit.operand(i)}, shape));
        } else {
            arguments.push_back(edit.operand(i));
        }
    }
    std::vector<ValueId> values = append_region(edit, edit.body(), std::move(arguments));
    for (size_t r = 0; r < values.size(); r++) {
        if (edit.body().results[r].argument >= 0) continue;
        Extents shape = edit.builder.type(values[r]).shape;
        shape.insert(shape.begin(), 1);
        values[r] = edit.builder.add_one("reshape", {values[r]}, reshape_attributes(shape));
    }
    give_all(edit, values);
    return true;
}

} // namespace scalide
