#include "expr/base_operators.h"
#include "ir/text.h"
#include "rulebook/check_operands.h"
#include "tool/operators.h"
#include <algorithm>
#include <fmt/format.h>

namespace scalide {

namespace {

/// Returns the expressions of the results as "`a`; `b`".
std::string joined(const std::vector<Expression> &expressions) {
    std::string text;
    for (const Expression &expression : expressions)
        text += (text.empty() ? "" : "; ") + (expression ? "`" + to_string(expression) + "`" : std::string("same as value"));
    return text;
}

/// Returns the dtypes of the operands with data, such as "floats" or "integers".
std::string dtype_words(const Rule &rule) {
    static const std::map<OperandClass, std::string> words{
        {OperandClass::floating, "floats"}, {OperandClass::integer, "integers"}, {OperandClass::boolean, "bool"},
        {OperandClass::any, "all but i64"}, {OperandClass::every, "all"},        {OperandClass::number, "floats, integers"},
        {OperandClass::index, "i32, i64"},  {OperandClass::bits, "u32"},         {OperandClass::program, ""}};
    return rule.operands.empty() ? "all" : words.at(rule.operands[0].operand_class);
}

/// Returns whether the rule computes data * scale (class UNSC in the study of Scalify).
std::string full_value_words(const Rule &rule) {
    if (!rule.has_scale() && !rule.is_plain()) return rule.is_base ? "" : "depends on its value";
    return rule.forms_full_values() ? "yes" : "no";
}

/// Returns ctest names. A star stands for the variants.
std::string test_words(const Rule &rule) {
    const size_t cases = rule.check.cases.size(), vectors = rule.check.vectors.size();
    return fmt::format("`rule.{0}.laws`, `rule.{0}.*.cpu`: {1} case{2}, {3} vector{4}", rule.op, cases, cases == 1 ? "" : "s", vectors,
                       vectors == 1 ? "" : "s");
}

std::string gradient_words(const Rule &rule) {
    switch (rule.gradient_kind) {
    case GradientKind::derived: return rule.is_base ? "transposed" : "derived from its value";
    case GradientKind::expressions: return "rule";
    case GradientKind::program: return "gradient of its program";
    default: return "none";
    }
}

std::string scaled_words(const Rule &rule) {
    if (rule.is_plain()) return "plain result";
    if (!rule.has_scale()) return rule.is_base ? "no" : "by the operators in its value";
    std::string strategies;
    for (const auto &[strategy, expressions] : rule.scale)
        strategies += (strategies.empty() ? "" : ", ") + (strategy.empty() ? "all strategies" : strategy);
    return rule.has_scale("l2") ? strategies : strategies + "; others: by the operators in its value";
}

/// Returns "base" with the class of the base operator, or "other operators" for a composite.
std::string value_words(const Rule &rule) {
    return rule.is_base ? "base: " + std::string(to_string(base_operator(rule.op).shape)) : "other operators";
}

std::string class_words(const OperandSpec &spec) {
    static const std::map<OperandClass, std::string> words{
        {OperandClass::floating, "float"}, {OperandClass::integer, "int"}, {OperandClass::boolean, "bool"},
        {OperandClass::number, "number"},  {OperandClass::any, "any"},     {OperandClass::every, "every"},
        {OperandClass::index, "index"},    {OperandClass::bits, "bits"},   {OperandClass::program, "program"}};
    return (spec.letter.empty() ? "" : spec.letter + " ") + words.at(spec.operand_class) + (spec.variadic ? "..." : "");
}

std::string operands_table(const Rule &rule) {
    std::string text = "| operand or attribute | type | default | test range |\n|---|---|---|---|\n";
    for (const OperandSpec &spec : rule.operands) {
        const auto domain = rule.check.domain.find(spec.name);
        const auto [low, high] = domain == rule.check.domain.end() ? std::pair(-2.0, 2.0) : domain->second;
        text += fmt::format("| `{}` | {} | | [{}, {}] |\n", spec.name, class_words(spec), low, high);
    }
    for (const AttributeSpec &spec : rule.attributes) {
        const std::string value = spec.default_value ? "`" + to_string(*spec.default_value) + "`" : spec.optional ? "optional" : "";
        text += fmt::format("| `{}` | {} | {} | |\n", spec.name, spec.type, value);
    }
    return text;
}

std::string meaning(const Rule &rule) {
    std::string text;
    for (const auto &[name, expression] : rule.lets) text += fmt::format("- let `{} = {}`\n", name, to_string(expression));
    text += fmt::format("- value: {}\n", rule.is_base ? "a base operator" : joined(rule.value));
    for (const auto &[strategy, expressions] : rule.scale)
        text += fmt::format("- scale{}: {}\n", strategy.empty() ? "" : " (" + strategy + ")", joined(expressions));
    if (rule.scale.contains("unit"))
        text += "- unit: the factor of the result in unit scaling. Gradients are separate operators with their own scales, so they have no "
                "factors here\n";
    if (rule.has_scale()) text += "- data: " + (rule.data.empty() ? "`ratio(value, scale)`" : joined(rule.data)) + "\n";
    text += fmt::format("- gradient: {}\n", gradient_words(rule));
    for (const auto &[operand, expression] : rule.gradient)
        text += fmt::format("  - `{}`: {}\n", operand, expression ? "`" + to_string(expression) + "`" : "not supported (error)");
    for (const Constraint &constraint : rule.constraints)
        text += fmt::format("- {}: {} (`{}`)\n", constraint.id, constraint.say, to_string(constraint.require));
    for (const auto &[dtype, bound] : rule.check.tolerance) text += fmt::format("- tolerance in {}: {}\n", dtype, bound);
    if (!rule.compat.empty()) text += "- " + rule.compat + "\n";
    if (function_name(rule) != rule.op) text += "- C++ function: `" + function_name(rule) + "`\n";
    return text;
}

bool has_example(const Rule &rule) { return !rule.check.cases.empty() && !rule.takes_program(); }

} // namespace

std::map<std::string, std::string> operator_pages(const Rulebook &rulebook) {
    std::map<std::string, std::string> pages;
    for (const Rule *rule : rulebook.rules()) {
        std::string page = fmt::format("# {}\n{}\n\n{}\n{}", rule->op, rule->doc, operands_table(*rule), meaning(*rule));
        if (has_example(*rule)) {
            const Program example = check_program(rulebook, *rule, rule->check.cases[0], Dtype::f32, Scaled::no);
            page += "\n```\n" + to_string(example) + "```\n";
        }
        pages[rule->op + ".md"] = page;
    }
    pages["README.md"] = "# Operators\n\nGenerated from the rule files.\n\n" + coverage_table(rulebook);
    return pages;
}

std::string coverage_table(const Rulebook &rulebook) {
    std::string text =
        "| operator | family | value | dtypes | scaled | forms full values | gradient | tested by |\n|---|---|---|---|---|---|---|---|\n";
    for (const Rule *rule : rulebook.rules())
        text += fmt::format("| [{0}]({0}.md) | {1} | {2} | {3} | {4} | {5} | {6} | {7} |\n", rule->op, rule->family, value_words(*rule),
                            dtype_words(*rule), scaled_words(*rule), full_value_words(*rule), gradient_words(*rule), test_words(*rule));
    return text;
}

} // namespace scalide
