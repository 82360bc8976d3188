#include "transforms/facts.h"
#include "expr/base_operators.h"
#include "transforms/constant_folding.h"
#include <algorithm>
#include <cmath>

namespace scalide {

namespace {

/// How an operator keeps -0 away from its result.
enum class KeepsAway {
    always,      ///< whatever the operands are
    any_operand, ///< x + y is -0 only when both are
    all_operands ///< the result is one of the operands' elements, or nearly
};

struct SignRow {
    std::string_view op;
    KeepsAway keeps;
};

constexpr SignRow sign_rows[] = {
    {"abs", KeepsAway::always},
    {"exp", KeepsAway::always},
    {"exp2", KeepsAway::always},
    {"logistic", KeepsAway::always},
    {"iota", KeepsAway::always},
    {"size", KeepsAway::always},
    {"reduce_sum", KeepsAway::always}, // folds from +0
    {"dot_general", KeepsAway::always},
    {"add", KeepsAway::any_operand},
    {"max", KeepsAway::any_operand}, // -0 < +0
    {"select_n", KeepsAway::all_operands},
    {"sqrt", KeepsAway::all_operands},
    {"tanh", KeepsAway::all_operands},
    {"pow2_down", KeepsAway::all_operands},
    {"pow2_up", KeepsAway::all_operands},
    {"pow2_nearest", KeepsAway::all_operands},
    {"min", KeepsAway::all_operands},
    {"reduce_max", KeepsAway::all_operands},
    {"reduce_min", KeepsAway::all_operands},
    {"broadcast_in_dim", KeepsAway::all_operands},
    {"reshape", KeepsAway::all_operands},
    {"transpose", KeepsAway::all_operands},
    {"rev", KeepsAway::all_operands},
    {"slice", KeepsAway::all_operands},
    {"pad", KeepsAway::all_operands},
    {"concatenate", KeepsAway::all_operands},
};

} // namespace

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

ValueId Facts::scalar_source(ValueId value) {
    if (program_.type(value).is_scalar()) return value;
    const Node *broadcast = producer(value, "broadcast_in_dim");
    return broadcast != nullptr && program_.type(broadcast->operands[0]).is_scalar() ? broadcast->operands[0] : -1;
}

const Facts::Fact &Facts::fact(ValueId value) {
    for (; nodes_seen_ < program_.nodes.size(); nodes_seen_++) learn(program_.nodes[nodes_seen_]);
    if (facts_.size() < program_.values.size()) facts_.resize(program_.values.size());
    return facts_[value];
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
    facts_[result].never_negative_zero = is_never_negative_zero(node, result);
}

bool Facts::is_never_negative_zero(const Node &node, ValueId result) const {
    const auto &splat = facts_[result].splat;
    if (splat) return !(*splat == 0 && std::signbit(*splat));
    const auto *row = std::ranges::find(sign_rows, node.op, &SignRow::op);
    if (row == std::end(sign_rows)) return false;
    const auto holds = [&](ValueId operand) { return facts_[operand].never_negative_zero || !is_float(program_.type(operand).dtype); };
    if (row->keeps == KeepsAway::any_operand) return std::ranges::any_of(node.operands, holds);
    return row->keeps == KeepsAway::always || std::ranges::all_of(node.operands, holds);
}

} // namespace scalide
