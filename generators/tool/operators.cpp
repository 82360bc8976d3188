#include "tool/operators.h"
#include <algorithm>
#include <fmt/format.h>
#include <set>

namespace scalide {

namespace {

// The C++ type of an attribute's parameter, the conversion of its value to an Attribute, and the default value. Without a default value,
// the parameter is a std::optional, and a call needs one more pair of braces.
struct ParameterType {
    const char *type, *conversion, *left_out = nullptr;
};

const std::map<std::string, ParameterType> parameter_types{
    {"axis", {"int64_t", "{}"}},
    {"integer", {"int64_t", "{}"}},
    {"extent", {"const Extent &", "{}"}},
    {"number", {"double", "{}"}},
    {"flag", {"Flag", "{}.value ? \"true\" : \"false\""}},
    {"word", {"const std::string &", "{}"}},
    {"name", {"const std::string &", "{}"}},
    {"program", {"const std::string &", "{}"}},
    {"dtype", {"Dtype", "std::string(to_string({}))"}},
    {"shape", {"const Extents &", "to_attribute({})"}},
    {"axes", {"const std::vector<int64_t> &", "to_attribute({})", "all_axes"}},
    {"integers", {"const std::vector<int64_t> &", "to_attribute({})"}},
    {"permutation", {"const std::vector<int64_t> &", "to_attribute({})"}},
    {"axis_pairs", {"const AxisPairs &", "to_attribute({})", "no_axis_pairs"}},
};

// Appends an underscore to reserved words of C++.
std::string cpp_name(const std::string &name) {
    static const std::set<std::string> reserved{"and", "or", "not", "xor", "operator", "default", "where", "union", "switch", "case"};
    return reserved.contains(name) ? name + "_" : name;
}

// Axes that a rule requires are optional here. The default is all axes.
bool may_be_left_out(const AttributeSpec &attribute) { return !attribute.is_required() || attribute.type == "axes"; }

std::string parameter_of(const AttributeSpec &attribute, const std::string &name) {
    const ParameterType &type = parameter_types.at(attribute.type);
    std::string plain = type.type;
    if (!may_be_left_out(attribute)) return plain + (plain.ends_with("&") ? "" : " ") + name;
    if (type.left_out) return fmt::format("{}{} = {}", plain, name, type.left_out);
    plain = plain.starts_with("const ") ? plain.substr(6, plain.size() - 8) : plain;
    return fmt::format("const std::optional<{}> &{} = {{}}", plain, name);
}

std::string statement_of(const AttributeSpec &attribute, const std::string &name) {
    const ParameterType &type = parameter_types.at(attribute.type);
    const bool is_optional = may_be_left_out(attribute) && !type.left_out;
    const std::string value = fmt::format(fmt::runtime(type.conversion), is_optional ? "(*" + name + ")" : name),
                      set = fmt::format("attributes[\"{}\"] = {};\n", attribute.name, value);
    if (!may_be_left_out(attribute)) return "    " + set;
    return fmt::format("    if ({}{}) {}", name, is_optional ? "" : fmt::format(" != {}", type.left_out), set);
}

// The type of the results, and the function that applies the operator. Structured bindings name the results of an operator with several.
std::pair<std::string, std::string> returned_by(const Rule &rule) {
    const size_t count = rule.results.size();
    if (rule.result(0).each) return {"std::vector<Tensor>", "apply_all"};
    if (count == 1) return {"Tensor", "apply"};
    return {fmt::format("std::array<Tensor, {}>", count), fmt::format("apply_n<{}>", count)};
}

// Optional attributes are set only if they are given. They come last.
std::string function_of(const Rule &rule) {
    std::string parameters, operands, required, optional, sets;
    const bool variadic = !rule.operands.empty() && rule.operands.back().variadic;
    for (const OperandSpec &operand : rule.operands) {
        parameters += operand.variadic ? fmt::format("const std::vector<Operand> &{}, ", cpp_name(operand.name))
                                       : fmt::format("const Operand &{}, ", cpp_name(operand.name));
        if (!operand.variadic) operands += cpp_name(operand.name) + ", ";
    }
    for (const AttributeSpec &attribute : rule.attributes) {
        const std::string name = cpp_name(attribute.name) + (rule.operand_index(attribute.name) >= 0 ? "_" : "");
        (may_be_left_out(attribute) ? optional : required) += parameter_of(attribute, name) + ", ";
        sets += statement_of(attribute, name);
    }
    const std::string all = parameters + required + optional + "const std::source_location &place = std::source_location::current()";
    std::string list = variadic
                           ? fmt::format("    std::vector<Operand> list{{{0}}};\n    list.insert(list.end(), {1}.begin(), {1}.end());\n",
                                         operands, cpp_name(rule.operands.back().name))
                           : fmt::format("    const std::vector<Operand> list{{{}}};\n", operands);
    const auto [type, call] = returned_by(rule);
    return fmt::format(
        "/// {}\ninline {} {}({}) {{\n    Attributes attributes;\n{}{}    return {}(\"{}\", list, attributes, place);\n}}\n\n", rule.doc,
        type, cpp_name(rule.op), all, sets, list, call, rule.op);
}

} // namespace

std::string operators_header(const Rulebook &rulebook) {
    std::string text = "// Generated by scalide rules --header.\n#pragma once\n#include \"scalide/tensor.h\"\n#include <optional>\n\n"
                       "namespace scalide {\n\n";
    for (const Rule *rule : rulebook.rules()) {
        if (rule->op != "constant" && rule->op != "size") text += function_of(*rule);
    }
    return text + "}  // namespace scalide\n";
}

} // namespace scalide
