#include "transforms/simplify/facts.h"
#include "expr/base_operators.h"
#include "transforms/simplify/constant_folding.h"
#include <algorithm>
#include <cmath>

namespace scalide {

bool is_power_of_two(double value) {
    int exponent = 0;
    return std::isfinite(value) && std::fabs(std::frexp(value, &exponent)) == 0.5 && exponent > -125 && exponent <= 126;
}

const Node *Facts::producer(ValueId value) {
    const int node = fact(value).node;
    return node < 0 ? nullptr : &program_.nodes[node];
}

const Node *Facts::producer(ValueId value, std::string_view op) {
    const Node *node = producer(value);
    return node != nullptr && node->op == op ? node : nullptr;
}

std::optional<double> Facts::splat(ValueId value) { return fact(value).splat; }

bool Facts::never_negative_zero(ValueId value) { return !is_float(program_.type(value).dtype) || fact(value).never_negative_zero; }

bool Facts::never_negative(ValueId value) { return fact(value).never_negative; }

ValueId Facts::scalar_source(ValueId value) {
    if (program_.type(value).is_scalar()) return value;
    const Node *broadcast = producer(value, "broadcast_in_dim");
    return broadcast != nullptr && program_.type(broadcast->operands[0]).is_scalar() ? broadcast->operands[0] : -1;
}

const Facts::Fact &Facts::fact(ValueId value) {
    if (facts_.empty()) learn_arguments();
    for (; nodes_seen_ < program_.nodes.size(); nodes_seen_++) learn(program_.nodes[nodes_seen_]);
    if (facts_.size() < program_.values.size()) facts_.resize(program_.values.size());
    return facts_[value];
}

void Facts::learn_arguments() {
    facts_.resize(program_.values.size());
    for (const Argument &argument : program_.arguments) {
        facts_[argument.value].never_negative = facts_[argument.value].never_negative_zero = argument.part.is_scale();
    }
}

void Facts::learn(const Node &node) {
    facts_.resize(program_.values.size());
    for (const ValueId result : node.results) facts_[result].node = static_cast<int>(nodes_seen_);
    if (node.results.size() != 1) return;
    std::vector<double> operands;
    for (const ValueId operand : node.operands) {
        if (facts_[operand].splat) operands.push_back(*facts_[operand].splat);
    }
    const ValueId result = node.results[0];
    if (operands.size() == node.operands.size()) facts_[result].splat = fold_constants(program_, node, program_.type(result), operands);
    learn_sign(node, facts_[result]);
}

void Facts::learn_sign(const Node &node, Fact &fact) const {
    if (fact.splat) {
        fact.never_negative_zero = *fact.splat != 0 || !std::signbit(*fact.splat);
        fact.never_negative = std::isnan(*fact.splat) || !std::signbit(*fact.splat);
        return;
    }
    const BaseOperator *row = find_base_operator(node.op);
    if (row == nullptr) return;
    const auto is_number = [&](ValueId operand) { return !is_integer(program_.type(operand).dtype); };
    const bool wraps_around = row->shape != Shape::movement && row->shape != Shape::sort && !std::ranges::all_of(node.operands, is_number);
    const auto is_which = [&](ValueId operand) { return program_.type(operand).dtype == Dtype::boolean; };
    fact.never_negative_zero = follows(row->signs.never_negative_zero, node.operands,
                                       [&](ValueId operand) { return is_which(operand) || facts_[operand].never_negative_zero; });
    fact.never_negative = !wraps_around && follows(row->signs.never_negative, node.operands,
                                                   [&](ValueId operand) { return is_which(operand) || facts_[operand].never_negative; });
}

} // namespace scalide
