#include "transforms/numerics/policy_roles.h"
#include "rulebook/check_rule.h"
#include <algorithm>
#include <iterator>

namespace scalide {

namespace {

constexpr std::string_view convolution = "conv_general_dilated";

bool is_float_class(const OperandSpec &operand) {
    return operand.operand_class == OperandClass::floating || operand.operand_class == OperandClass::number ||
           operand.operand_class == OperandClass::any || operand.operand_class == OperandClass::every;
}

/// True if the result has the elements of the first operand, moved or converted. No other operand contributes elements.
bool hands_on(const Rule &rule) {
    if (rule.operands.empty() || rule.operands[0].variadic || rule.results.size() != 1) return false;
    const bool names_it = rule.value.size() == 1 && rule.value[0]->kind == ExpressionNode::Kind::name;
    if (names_it && rule.value[0]->text == rule.operands[0].name) return true;
    const bool moves = rule.family == "movement" || rule.family == "index";
    const bool converts = rule.op == "convert_element_type" || rule.op == "reduce_precision";
    return converts || (moves && std::ranges::count_if(rule.operands, is_float_class) == 1);
}

bool has_symbol(const Extents &shape) {
    return std::ranges::any_of(shape, [](const Extent &extent) { return !extent.is_static(); });
}

} // namespace

PolicyRoles::PolicyRoles(const Program &program, const Rulebook &rulebook)
    : program_(program), rulebook_(rulebook), source_(program.values.size(), -1), root_(program.values.size()),
      depends_(program.values.size()), roles_(program.values.size(), Role::primal) {
    for (size_t value = 0; value < root_.size(); value++) root_[value] = static_cast<ValueId>(value);
    for (const Argument &argument : program.arguments) {
        source_[argument.value] = argument.value;
        depends_[argument.value] = true;
    }
    for (const Node &node : program.nodes) {
        trace(node);
        meet(node);
    }
    std::set<ValueId> data;
    for (const Meeting &meeting : meetings_) decide(meeting, data);
    for (const ValueId argument : data) weights_.erase(argument);
}

bool PolicyRoles::is_contraction(const Node &node) const {
    const Rule &rule = rulebook_.rule(node.op, node.location);
    if (rule.family == "contract" || rule.op == convolution) return true;
    return rule.family == "window" && std::ranges::count(used_operators(rule, rulebook_), convolution) > 0;
}

void PolicyRoles::trace(const Node &node) {
    const bool depends = std::ranges::any_of(node.operands, [&](ValueId operand) { return depends_[operand]; });
    for (const ValueId result : node.results) {
        depends_[result] = depends;
        roles_[result] = node.role;
    }
    if (!hands_on(rulebook_.rule(node.op, node.location))) return;
    source_[node.results[0]] = source_[node.operands[0]];
    root_[node.results[0]] = root_[node.operands[0]];
}

void PolicyRoles::meet(const Node &node) {
    if (!is_contraction(node)) return;
    const ValueId lhs = node.operands[0], rhs = node.operands[1], a = source_[lhs], b = source_[rhs];
    if (a >= 0) remember(a, rhs, node.role);
    if (b >= 0) remember(b, lhs, node.role);
    if (a >= 0 && roles_[rhs] == Role::cotangent) meets_cotangent_.insert(a);
    if (b >= 0 && roles_[lhs] == Role::cotangent) meets_cotangent_.insert(b);
    if (node.role == Role::primal && a != b && depends_[lhs] && depends_[rhs]) meetings_.push_back({a, b});
}

void PolicyRoles::remember(ValueId argument, ValueId other, Role role) {
    if (role == Role::primal) {
        met_[root_[other]].insert(argument);
        is_multiplied_.insert(argument);
    }
    if (roles_[other] != Role::cotangent) return;
    cotangents_[root_[other]].insert(argument);
    has_cotangent_.insert(argument);
}

void PolicyRoles::add_gradients(ValueId data, ValueId cotangent, std::set<ValueId> &arguments) const {
    if (roles_[cotangent] != Role::cotangent) return;
    const auto at = [](const std::map<ValueId, std::set<ValueId>> &arguments, ValueId value) {
        const auto found = arguments.find(value);
        return found == arguments.end() ? std::set<ValueId>() : found->second;
    };
    const std::set<ValueId> met = at(met_, root_[data]);
    std::set<ValueId> known = at(cotangents_, root_[cotangent]);
    known.erase(source_[data]);
    for (const ValueId argument : known)
        if (!is_multiplied_.contains(argument) || met.contains(argument)) arguments.insert(argument);
    if (known.empty()) std::ranges::set_difference(met, has_cotangent_, std::inserter(arguments, arguments.end()));
}

std::set<ValueId> PolicyRoles::multiplied(const Node &node) const {
    std::set<ValueId> arguments;
    if (!is_contraction(node)) return arguments;
    for (const ValueId operand : {node.operands[0], node.operands[1]})
        if (source_[operand] >= 0) arguments.insert(source_[operand]);
    if (node.role != Role::cotangent) return arguments;
    add_gradients(node.operands[0], node.operands[1], arguments);
    add_gradients(node.operands[1], node.operands[0], arguments);
    return arguments;
}

/// Records the weight of a contraction, and its data if both operands are arguments.
void PolicyRoles::decide(const Meeting &meeting, std::set<ValueId> &data) {
    auto [a, b] = meeting;
    if (a < 0 || b < 0) {
        weights_.insert(std::max(a, b));
        return;
    }
    const bool cotangents[2] = {meets_cotangent_.contains(a), meets_cotangent_.contains(b)};
    const bool symbols[2] = {has_symbol(program_.type(a).shape), has_symbol(program_.type(b).shape)};
    const bool *say = symbols[0] != symbols[1] ? symbols : cotangents;
    if (say[1] && !say[0]) std::swap(a, b);
    data.insert(a);
    weights_.insert(b);
}

} // namespace scalide
