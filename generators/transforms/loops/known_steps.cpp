#include "transforms/loops/known_steps.h"
#include "expr/base_operators.h"
#include "transforms/analysis/operators.h"
#include <algorithm>

namespace scalide {

KnownSteps::KnownSteps(RegionEdit &edit)
    : edit_(edit), body_(edit.body()), known_(body_.values.size(), Known::no), makers_(producers(body_)) {
    for (size_t i = 0; i < body_.arguments.size(); i++) {
        const Argument &argument = body_.arguments[i];
        if (argument.inout) continue;
        known_[argument.value] = edit.is_capture(i) ? Known::same : Known::varies;
        if (argument.supply != Supply::step) added_[argument.value] = edit.operand(i);
    }
    for (const Node &node : body_.nodes) learn(node);
}

void KnownSteps::learn(const Node &node) {
    if (!std::ranges::all_of(node.operands, [&](ValueId operand) { return is_known(operand); })) return;
    const std::vector<bool> varies = varying(node);
    const bool is_same = std::ranges::count(varies, true) == 0;
    const BaseOperator *base = find_base_operator(node.op);
    const bool is_source = base != nullptr && base->shape == Shape::source;
    if (is_source || can_batch(edit_.builder.rulebook(), body_, node, varies))
        known_[node.results[0]] = is_same ? Known::same : Known::varies;
}

std::vector<bool> KnownSteps::varying(const Node &node) const {
    std::vector<bool> flags;
    for (const ValueId operand : node.operands) flags.push_back(varies(operand));
    return flags;
}

bool KnownSteps::is_at_hand(ValueId value) const {
    if (!varies(value)) return false;
    if (makers_[value] < 0) return true;
    const Node &node = body_.nodes[makers_[value]];
    return moves_one_array(node) && is_at_hand(node.operands[0]);
}

ValueId KnownSteps::add(const Node &node) {
    std::vector<StepsValue> operands;
    for (const ValueId operand : node.operands) operands.push_back(before(operand));
    if (varies(node.results[0])) return add_batched(edit_.builder, body_, node, edit_.node.attributes.at("length").integer, operands);
    Program &program = edit_.builder.program();
    Node copy = node;
    for (size_t i = 0; i < operands.size(); i++) copy.operands[i] = operands[i].value;
    copy.results = {add_value(program, body_.value_name(node.results[0]), body_.type(node.results[0]))};
    program.nodes.push_back(copy);
    return copy.results[0];
}

StepsValue KnownSteps::before(ValueId value) {
    const auto found = added_.find(value);
    if (found != added_.end()) return {found->second, varies(value)};
    const bool is_step = makers_[value] < 0;
    added_[value] = is_step ? edit_.step_numbers() : add(body_.nodes[makers_[value]]);
    return {added_[value], varies(value)};
}

} // namespace scalide
