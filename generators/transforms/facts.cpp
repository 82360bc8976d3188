#include "transforms/facts.h"
#include "expr/base_operators.h"
#include "transforms/constant_folding.h"
#include <algorithm>
#include <cmath>

namespace scalide {

namespace {

/// From which operands a property of the result follows.
enum class From {
    nothing,      ///< it has not got it
    no_operand,   ///< it has it whatever the operands are
    any_operand,  ///< from one operand that has it
    all_operands, ///< when all operands have it
};

struct SignRow {
    std::string_view op;
    From never_negative_zero, never_negative;
};

// clang-format off
constexpr SignRow sign_rows[] = {
    {"abs", From::no_operand, From::no_operand},
    {"exp", From::no_operand, From::no_operand},
    {"exp2", From::no_operand, From::no_operand},
    {"logistic", From::no_operand, From::no_operand},
    {"iota", From::no_operand, From::no_operand},
    {"size", From::no_operand, From::no_operand},
    {"argsort", From::no_operand, From::no_operand},
    {"reduce_sum", From::no_operand, From::all_operands}, // folds from +0
    {"dot_general", From::no_operand, From::all_operands},
    {"add", From::any_operand, From::all_operands}, // -0 only from two of them
    {"max", From::any_operand, From::any_operand},  // -0 < +0
    {"mul", From::nothing, From::all_operands},
    {"div", From::nothing, From::all_operands},
    {"min", From::all_operands, From::all_operands},
    {"select_n", From::all_operands, From::all_operands},
    {"sqrt", From::all_operands, From::all_operands},
    {"tanh", From::all_operands, From::all_operands},
    {"pow2_down", From::all_operands, From::all_operands},
    {"pow2_up", From::all_operands, From::all_operands},
    {"pow2_nearest", From::all_operands, From::all_operands},
    {"norm_to_scale", From::no_operand, From::no_operand},
    {"clamp_scale", From::no_operand, From::no_operand},
    {"divide_no_nan", From::nothing, From::all_operands},
    {"convert_element_type", From::nothing, From::all_operands}, // small negative numbers become -0
    {"reduce_max", From::all_operands, From::all_operands},
    {"reduce_min", From::all_operands, From::all_operands},
    {"broadcast_in_dim", From::all_operands, From::all_operands},
    {"reshape", From::all_operands, From::all_operands},
    {"transpose", From::all_operands, From::all_operands},
    {"rev", From::all_operands, From::all_operands},
    {"slice", From::all_operands, From::all_operands},
    {"pad", From::all_operands, From::all_operands},
    {"concatenate", From::all_operands, From::all_operands},
};
// clang-format on

template<typename Has>
bool follows(From from, const std::vector<ValueId> &operands, const Has &has) {
    switch (from) {
    case From::nothing: return false;
    case From::no_operand: return true;
    case From::any_operand: return std::ranges::any_of(operands, has);
    case From::all_operands: return std::ranges::all_of(operands, has);
    }
    return false;
}

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
    const auto *row = std::ranges::find(sign_rows, node.op, &SignRow::op);
    if (row == std::end(sign_rows)) return;
    const auto is_number = [&](ValueId operand) { return !is_integer(program_.type(operand).dtype); };
    const Shape shape = find_base_operator(node.op)->shape;
    const bool wraps_around = shape != Shape::movement && shape != Shape::sort && !std::ranges::all_of(node.operands, is_number);
    const auto is_which = [&](ValueId operand) { return program_.type(operand).dtype == Dtype::boolean; };
    fact.never_negative_zero = follows(row->never_negative_zero, node.operands,
                                       [&](ValueId operand) { return is_which(operand) || facts_[operand].never_negative_zero; });
    fact.never_negative = !wraps_around && follows(row->never_negative, node.operands,
                                                   [&](ValueId operand) { return is_which(operand) || facts_[operand].never_negative; });
}

} // namespace scalide
