#include "rulebook/static_value.h"
#include "expr/base_operators.h"
#include "rulebook/unplaced.h"
#include <algorithm>
#include <cmath>
#include <numbers>

namespace scalide {

namespace {

using Kind = ExpressionNode::Kind;

bool is_extent(const Attribute &value) { return value.kind == Attribute::Kind::integer; }

/// True for words that need no definition: true, false, dtypes, and the values of word attributes.
bool is_word(const std::string &name, const Rule &rule) {
    if (name == "true" || name == "false" || parse_dtype(name)) return true;
    return std::ranges::any_of(rule.attributes,
                               [&](const AttributeSpec &spec) { return std::ranges::find(spec.choices, name) != spec.choices.end(); });
}

std::optional<double> constant_named(const std::string &name) {
    if (name == "pi") return std::numbers::pi;
    if (name == "inf") return INFINITY;
    return std::nullopt;
}

StaticValue evaluate(const Expression &expression, const StaticScope &scope);

StaticValue evaluate_name(const std::string &name, const StaticScope &scope) {
    const auto attribute = scope.attributes.find(name);
    if (attribute != scope.attributes.end()) return {attribute->second};
    if (const int operand = scope.rule.operand_index(name); operand >= 0)
        return {{}, operand, operand_types(scope.rule, operand, scope.operands)};
    const int result = scope.rule.result_index(name);
    if (result >= 0 && result < static_cast<int>(scope.results.size())) return {{}, 0, {scope.results[result]}};
    if (const auto constant = constant_named(name)) return {*constant};
    if (is_word(name, scope.rule)) return {Attribute(name)};
    const auto let = std::ranges::find(scope.rule.lets, name, [](const auto &named) { return named.first; });
    if (let != scope.rule.lets.end()) return evaluate(let->second, scope);
    fail_unplaced("must be known at build time", "'" + name + "'");
}

bool compare(const std::string &op, const Extent &a, const Extent &b) {
    const bool swapped = op == "gt" || op == "ge", strict = op == "lt" || op == "gt";
    const Extent &low = swapped ? b : a, &high = swapped ? a : b;
    const auto holds = less_or_equal(strict ? low + Extent(1) : low, high);
    if (!holds) fail_unplaced("must not depend on the values of symbols", to_string(a) + " and " + to_string(b));
    return *holds;
}

/// Evaluates operators on extents; nothing if the operator needs numbers.
std::optional<Attribute> evaluate_on_extents(const std::string &op, const std::vector<Attribute> &v) {
    if (op == "add") return v[0].integer + v[1].integer;
    if (op == "sub") return v[0].integer - v[1].integer;
    if (op == "mul") return v[0].integer * v[1].integer;
    if (op == "rem" && !v[0].integer.is_static() && v[0].integer.divide(v[1].integer)) return Extent(0);
    if (op == "lt" || op == "le" || op == "gt" || op == "ge") return make_flag(compare(op, v[0].integer, v[1].integer));
    return std::nullopt;
}

bool is_flag(const Attribute &value) { return value == make_flag(true) || value == make_flag(false); }

double number_of(const Attribute &value) {
    if (is_flag(value)) return is_true(value);
    const bool is_number = value.kind == Attribute::Kind::number || (is_extent(value) && value.integer.is_static());
    if (!is_number) fail_unplaced("must be a number here", to_string(value));
    return to_number(value);
}

constexpr std::string_view truth_operators[] = {"is_finite", "lt", "le", "gt", "ge", "and", "or", "xor", "not"};
constexpr std::string_view whole_operators[] = {"floor", "ceil", "round"};

Attribute evaluate_on_numbers(const BaseOperator &op, const std::vector<Attribute> &v) {
    std::vector<double> numbers;
    for (const Attribute &value : v) numbers.push_back(number_of(value));
    const double result = op.evaluate(numbers);
    if (std::ranges::find(truth_operators, op.name) != std::end(truth_operators)) return make_flag(result != 0);
    const bool is_integer_operator =
        std::ranges::find(whole_operators, op.name) != std::end(whole_operators) || (op.name != "div" && std::ranges::all_of(v, is_extent));
    const bool stays_integer = is_integer_operator && result == std::trunc(result) && std::fabs(result) < 0x1p53;
    return stays_integer ? Attribute(static_cast<int64_t>(result)) : Attribute(result);
}

bool equal_values(const Attribute &a, const Attribute &b) {
    if (a.kind == Attribute::Kind::list || b.kind == Attribute::Kind::list)
        return a.kind == b.kind && std::ranges::equal(a.list, b.list, equal_values);
    const bool are_words = a.kind == Attribute::Kind::word && b.kind == Attribute::Kind::word;
    if (are_words) return a.word == b.word;
    if (is_extent(a) && is_extent(b)) return a.integer == b.integer;
    const bool is_one_word = a.kind == Attribute::Kind::word || b.kind == Attribute::Kind::word;
    return !is_one_word && number_of(a) == number_of(b);
}

Attribute evaluate_value(const Expression &expression, const StaticScope &scope) {
    const StaticValue value = evaluate(expression, scope);
    if (value.operand >= 0) fail_unplaced("must be known at build time", "operand '" + to_string(expression) + "'");
    return value.value;
}

Attribute evaluate_call(const ExpressionNode &node, const StaticScope &scope) {
    if (const ShapeFunction *function = find_shape_function(node.text)) {
        std::vector<StaticValue> values;
        for (const Expression &operand : node.operands) values.push_back(evaluate(operand, scope));
        return function->evaluate(values);
    }
    std::vector<Attribute> values;
    for (const Expression &operand : node.operands) values.push_back(evaluate_value(operand, scope));
    if (node.text == "select" && values.size() == 3) return is_true(values[0]) ? values[1] : values[2];
    return evaluate_operator(node.text, values);
}

Attribute evaluate_list(const ExpressionNode &node, const StaticScope &scope) {
    std::vector<Attribute> values;
    for (const Expression &element : node.operands) values.push_back(evaluate_value(element, scope));
    return values;
}

Attribute number_attribute(double number) {
    const bool is_integer = number == std::trunc(number) && std::fabs(number) < 0x1p53 && !(number == 0 && std::signbit(number));
    return is_integer ? Attribute(static_cast<int64_t>(number)) : Attribute(number);
}

StaticValue evaluate(const Expression &expression, const StaticScope &scope) {
    const ExpressionNode &node = *expression;
    switch (node.kind) {
    case Kind::number: return {number_attribute(node.number)};
    case Kind::name: return evaluate_name(node.text, scope);
    case Kind::list: return {evaluate_list(node, scope)};
    case Kind::call: return {evaluate_call(node, scope)};
    case Kind::member: break;
    }
    fail_unplaced("must be known at build time", "'" + to_string(expression) + "'");
}

} // namespace

Attribute evaluate_operator(const std::string &op, const std::vector<Attribute> &v) {
    const BaseOperator *base = find_base_operator(op);
    if (!base || !base->evaluate || !base->parameter.empty() || base->takes_width || base->arity != static_cast<int>(v.size()))
        fail_unplaced("this function cannot be evaluated at build time", op + " of " + std::to_string(v.size()));
    if (op == "eq" || op == "ne") return make_flag(equal_values(v[0], v[1]) == (op == "eq"));
    const auto is_list = [](const Attribute &value) { return value.kind == Attribute::Kind::list; };
    if (op == "add" && std::ranges::all_of(v, is_list)) {
        Attribute joined = v[0];
        joined.list.insert(joined.list.end(), v[1].list.begin(), v[1].list.end());
        return joined;
    }
    if (v.size() == 2 && std::ranges::all_of(v, is_extent))
        if (const auto result = evaluate_on_extents(op, v)) return *result;
    return evaluate_on_numbers(*base, v);
}

std::vector<Type> operand_types(const Rule &rule, int operand, const std::vector<Type> &flat) {
    const auto first = flat.begin() + std::min<size_t>(operand, flat.size());
    if (rule.operands[operand].variadic) return {first, flat.end()};
    return {first, first + std::min<ptrdiff_t>(1, flat.end() - first)};
}

bool is_constant_name(const std::string &name, const Rule &rule) { return constant_named(name) || is_word(name, rule); }

Attribute evaluate_static(const Expression &expression, const StaticScope &scope) { return evaluate_value(expression, scope); }

Attribute make_flag(bool value) { return value ? "true" : "false"; }

bool is_true(const Attribute &attribute) {
    if (!is_flag(attribute)) fail_unplaced("must be true or false", to_string(attribute));
    return attribute.word == "true";
}

Extent to_extent(const Attribute &attribute) {
    if (attribute.kind == Attribute::Kind::word && !is_flag(attribute)) return Extent::symbol(attribute.word);
    if (attribute.kind != Attribute::Kind::integer) fail_unplaced("must be an extent", to_string(attribute));
    return attribute.integer;
}

std::optional<bool> less_or_equal(const Extent &a, const Extent &b) {
    const Extent difference = b - a;
    const Extent::Terms terms = difference.terms();
    if (std::ranges::all_of(terms, [](const auto &term) { return term.second >= 0; })) return true;
    const bool is_negative = difference.constant() < 0 && std::ranges::all_of(terms, [](const auto &term) { return term.second <= 0; });
    return is_negative ? std::optional(false) : std::nullopt;
}

} // namespace scalide
