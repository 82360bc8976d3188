#include "tool/operators.h"
#include <algorithm>
#include <fmt/format.h>
#include <set>

namespace scalide {

namespace {

// C++ type of an attribute's parameter, and how its value becomes an Attribute.
struct ParameterType {
    const char *type, *conversion;
};

const std::map<std::string, ParameterType> parameter_types{
    {"axis", {"int64_t", "{}"}},
    {"integer", {"int64_t", "{}"}},
    {"extent", {"const Extent &", "{}"}},
    {"number", {"double", "{}"}},
    {"flag", {"const std::string &", "{}"}},
    {"word", {"const std::string &", "{}"}},
    {"program", {"const std::string &", "{}"}},
    {"dtype", {"Dtype", "std::string(to_string({}))"}},
    {"shape", {"const Extents &", "to_attribute({})"}},
    {"axes", {"const std::vector<int64_t> &", "to_attribute({})"}},
    {"integers", {"const std::vector<int64_t> &", "to_attribute({})"}},
    {"permutation", {"const std::vector<int64_t> &", "to_attribute({})"}},
    {"axis_pairs", {"const std::array<std::vector<int64_t>, 2> &", "std::vector<Attribute>{{to_attribute({0}[0]), to_attribute({0}[1])}}"}},
};

// Names that C++ keeps for itself get an underscore.
std::string cpp_name(const std::string &name) {
    static const std::set<std::string> reserved{"and", "or", "not", "xor", "operator", "default", "where", "union", "switch", "case"};
    return reserved.contains(name) ? name + "_" : name;
}

// Attributes with a default are left to it unless given: std::optional parameters, last.
std::string function_of(const Rule &rule) {
    std::string parameters, operands, required, optional, sets, optional_sets;
    const bool variadic = !rule.operands.empty() && rule.operands.back().variadic;
    for (const OperandSpec &operand : rule.operands) {
        parameters += operand.variadic ? fmt::format("const std::vector<Operand> &{}, ", cpp_name(operand.name))
                                       : fmt::format("const Operand &{}, ", cpp_name(operand.name));
        if (!operand.variadic) operands += cpp_name(operand.name) + ", ";
    }
    for (const AttributeSpec &attribute : rule.attributes) {
        const ParameterType &type = parameter_types.at(attribute.type);
        std::string name = cpp_name(attribute.name);
        if (rule.operand_index(attribute.name) >= 0) name += "_";
        if (attribute.default_value) {
            std::string plain = type.type;
            plain = plain.starts_with("const ") ? plain.substr(6, plain.size() - 8) : plain;
            optional += fmt::format("const std::optional<{}> &{} = {{}}, ", plain, name);
            optional_sets += fmt::format("    if ({0}) attributes[\"{1}\"] = {2};\n", name, attribute.name,
                                         fmt::format(fmt::runtime(type.conversion), "(*" + name + ")"));
        } else {
            required += fmt::format("{}{}{}, ", type.type, std::string(type.type).ends_with("&") ? "" : " ", name);
            sets += fmt::format("    attributes[\"{}\"] = {};\n", attribute.name, fmt::format(fmt::runtime(type.conversion), name));
        }
    }
    std::string all = parameters + required + optional;
    if (!all.empty()) all.resize(all.size() - 2);
    std::string list = variadic
                           ? fmt::format("    std::vector<Operand> list{{{0}}};\n    list.insert(list.end(), {1}.begin(), {1}.end());\n",
                                         operands, cpp_name(rule.operands.back().name))
                           : fmt::format("    const std::vector<Operand> list{{{}}};\n", operands);
    const bool several = rule.results.size() > 1;
    return fmt::format("/// {}\ninline {} {}({}) {{\n    Attributes attributes;\n{}{}{}    return {}(\"{}\", list, attributes);\n}}\n\n",
                       rule.doc, several ? "std::vector<Tensor>" : "Tensor", cpp_name(rule.op), all, sets, optional_sets, list,
                       several ? "apply_all" : "apply", rule.op);
}

std::string joined(const std::vector<Expression> &expressions) {
    std::string text;
    for (const Expression &expression : expressions)
        text += (text.empty() ? "" : "; ") + (expression ? to_string(expression) : "as `value`");
    return text;
}

bool uses_full_values(const Rule &rule) {
    for (const Expression &data : rule.data) {
        if (!data) return true;
    }
    return rule.has_scale() && rule.data.empty();
}

std::string gradient_words(const Rule &rule) {
    switch (rule.gradient_kind) {
    case GradientKind::derived: return "derived (transposed)";
    case GradientKind::expressions: return "rule";
    default: return rule.is_base || rule.results[0].plain ? "none" : "through its value";
    }
}

std::string scaled_words(const Rule &rule) {
    if (!rule.has_scale()) return rule.is_base ? "plain" : "by its parts";
    std::string strategies;
    for (const auto &[strategy, expressions] : rule.scale)
        strategies += (strategies.empty() ? "" : ", ") + (strategy.empty() ? "all" : strategy);
    return strategies;
}

} // namespace

std::string operators_header(const Rulebook &rulebook) {
    std::string text =
        "// Generated by scalide rules --header.\n#pragma once\n#include \"frontend/tensor.h\"\n#include <array>\n#include <optional>\n\n"
        "namespace scalide {\n\n";
    for (const Rule *rule : rulebook.rules()) {
        if (rule->op != "constant" && rule->op != "size") text += function_of(*rule);
    }
    return text + "}  // namespace scalide\n";
}

std::string operators_reference(const Rulebook &rulebook) {
    std::string text = "# Operators\n\nGenerated from the rule files.\n";
    for (const Rule *rule : rulebook.rules()) {
        text += fmt::format("\n## {}\n{}\n\n", rule->op, rule->doc);
        for (const auto &[name, expression] : rule->lets) text += fmt::format("- let {} = `{}`\n", name, to_string(expression));
        text += fmt::format("- value: `{}`\n", rule->is_base ? "base" : joined(rule->value));
        for (const auto &[strategy, expressions] : rule->scale) {
            text += fmt::format("- scale{}: `{}`\n", strategy.empty() ? "" : " (" + strategy + ")", joined(expressions));
        }
        if (!rule->data.empty()) text += fmt::format("- data: `{}`\n", joined(rule->data));
        text += fmt::format("- gradient: {}\n", gradient_words(*rule));
        for (const auto &[operand, expression] : rule->gradient) text += fmt::format("  - {}: `{}`\n", operand, to_string(expression));
        for (const Constraint &constraint : rule->constraints) {
            text += fmt::format("- {}: {} (`{}`)\n", constraint.id, constraint.say, to_string(constraint.require));
        }
        for (const auto &[operand, domain] : rule->check.domain)
            text += fmt::format("- tested for {} in [{}, {}]\n", operand, domain.first, domain.second);
    }
    return text;
}

std::string coverage_table(const Rulebook &rulebook) {
    std::string text = "| operator | family | scaled | forms full values | gradient |\n|---|---|---|---|---|\n";
    for (const Rule *rule : rulebook.rules()) {
        text += fmt::format("| {} | {} | {} | {} | {} |\n", rule->op, rule->family, scaled_words(*rule),
                            rule->has_scale() ? (uses_full_values(*rule) ? "yes" : "no") : "", gradient_words(*rule));
    }
    return text;
}

} // namespace scalide
