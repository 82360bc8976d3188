#include "transforms/simplify/rewrite_rules.h"
#include "expr/base_operators.h"
#include <algorithm>
#include <cmath>

namespace scalide {

namespace {

using Condition = bool (*)(Facts &, const Bindings &);

constexpr Condition always = [](Facts &, const Bindings &) { return true; };
constexpr Condition x_is_never_negative_zero = [](Facts &facts, const Bindings &bound) { return facts.never_negative_zero(bound.at("x")); };
constexpr Condition x_is_never_negative = [](Facts &facts, const Bindings &bound) { return facts.never_negative(bound.at("x")); };
constexpr Condition x_is_boolean = [](Facts &facts, const Bindings &bound) {
    return facts.program().type(bound.at("x")).dtype == Dtype::boolean;
};
constexpr Condition x_is_no_float = [](Facts &facts, const Bindings &bound) {
    return !is_float(facts.program().type(bound.at("x")).dtype);
};
constexpr Condition c_is_a_power_of_two = [](Facts &facts, const Bindings &bound) {
    const ValueId c = bound.at("c");
    return is_float(facts.program().type(c).dtype) && facts.splat(c) && is_power_of_two(*facts.splat(c));
};

constexpr Condition x_is_clamped = [](Facts &facts, const Bindings &bound) {
    const Node *maker = facts.producer(bound.at("x"));
    const BaseOperator *op = maker != nullptr ? find_base_operator(maker->op) : nullptr;
    return op != nullptr && op->makes_scale;
};

struct RewriteRow {
    const char *pattern, *replacement;
    Condition holds = always;
};

constexpr RewriteRow rewrite_rows[] = {
    // sums: x + 0 changes -0 to +0; x + -0 and x - 0 keep every bit
    {"x + -0", "x"},
    {"x - 0", "x"},
    {"x + 0", "x", x_is_never_negative_zero},
    {"x - -0", "x", x_is_never_negative_zero},
    {"x + neg(y)", "x - y"},
    {"x - neg(y)", "x + y"},
    {"neg(neg(x))", "x"},
    {"x * 1", "x"},
    {"x / 1", "x"},
    {"x / c", "x * (1 / c)", c_is_a_power_of_two},
    // booleans
    {"not not x", "x", x_is_boolean},
    {"x and 1", "x", x_is_boolean},
    {"x and 0", "0", x_is_boolean},
    {"x or 0", "x", x_is_boolean},
    {"x or 1", "1", x_is_boolean},
    {"x and x", "x"},
    {"x or x", "x"},
    {"eq(x, x)", "1", x_is_no_float},
    {"ne(x, x)", "0", x_is_no_float},
    // selection
    {"select_n(0, x, y)", "x"},
    {"select_n(1, x, y)", "y"},
    {"select_n(p, x, x)", "x"},
    {"select_n(not x, y, z)", "select_n(x, z, y)", x_is_boolean},
    {"max(x, x)", "x"},
    {"min(x, x)", "x"},
    {"abs(x)", "x", x_is_never_negative},
    {"max(x, 0)", "x", x_is_never_negative},
    {"x < 0", "0", x_is_never_negative},
    // scales
    {"divide_no_nan(0, x)", "0", x_is_never_negative}, // x is a scale; if it were NaN, all values would be meaningless
    {"divide_no_nan(x, 1)", "x"},
    {"divide_no_nan(x, c)", "x * (1 / c)", c_is_a_power_of_two},
    {"clamp_scale(x)", "x", x_is_clamped},
    {"abs(neg(x))", "abs(x)"},
};

bool same_number(double a, double b) { return a == b && std::signbit(a) == std::signbit(b); }

bool match_value(const Expression &pattern, ValueId value, Facts &facts, Bindings &bound);

bool match_operands(const ExpressionNode &pattern, const std::vector<ValueId> &operands, Facts &facts, Bindings &bound) {
    if (pattern.operands.size() != operands.size()) return false;
    for (size_t i = 0; i < operands.size(); i++) {
        if (!match_value(pattern.operands[i], operands[i], facts, bound)) return false;
    }
    return true;
}

bool is_commutative(const Node &node) {
    const BaseOperator *op = find_base_operator(node.op);
    return op != nullptr && op->is_commutative;
}

bool match_node(const ExpressionNode &pattern, const Node &node, Facts &facts, Bindings &bound) {
    if (node.op != pattern.text) return false;
    Bindings attempt = bound;
    bool matched = match_operands(pattern, node.operands, facts, attempt);
    if (!matched && is_commutative(node)) {
        attempt = bound;
        matched = match_operands(pattern, {node.operands[1], node.operands[0]}, facts, attempt);
    }
    if (matched) bound = std::move(attempt);
    return matched;
}

bool match_value(const Expression &pattern, ValueId value, Facts &facts, Bindings &bound) {
    using Kind = ExpressionNode::Kind;
    if (pattern->kind == Kind::name) return bound.emplace(pattern->text, value).first->second == value;
    if (pattern->kind == Kind::number) {
        const auto splat = facts.splat(value);
        return splat && same_number(*splat, pattern->number);
    }
    const Node *node = facts.producer(value);
    return pattern->kind == Kind::call && node != nullptr && match_node(*pattern, *node, facts, bound);
}

} // namespace

const std::vector<RewriteRule> &rewrite_rules() {
    static const std::vector<RewriteRule> rules = [] {
        std::vector<RewriteRule> parsed;
        for (const RewriteRow &row : rewrite_rows) {
            const Location where{"rewrite rule", static_cast<int>(parsed.size()) + 1};
            parsed.push_back({parse_expression(row.pattern, where), parse_expression(row.replacement, where), row.holds});
        }
        return parsed;
    }();
    return rules;
}

std::optional<Bindings> match(const Expression &pattern, const Node &node, Facts &facts) {
    Bindings bound;
    return match_node(*pattern, node, facts, bound) ? std::optional(bound) : std::nullopt;
}

} // namespace scalide
