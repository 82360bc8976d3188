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
    {"extent", {"const Dimension &", "{}.extent"}},
    {"group", {"const RankGroup &", "{}.extent"}},
    {"groups", {"const std::vector<RankGroup> &", "to_attribute({})", "all_groups"}},
    {"number", {"double", "{}"}},
    {"flag", {"Flag", "{}.value ? \"true\" : \"false\""}},
    {"word", {"const std::string &", "{}"}},
    {"name", {"const std::string &", "{}"}},
    {"program", {"const std::string &", "{}"}},
    {"dtype", {"Dtype", "std::string(to_string({}))"}},
    {"shape", {"const ShapeArgument &", "to_attribute({}.extents)"}},
    {"axes", {"const std::vector<int64_t> &", "to_attribute({})", "all_axes"}},
    {"integers", {"const std::vector<int64_t> &", "to_attribute({})"}},
    {"permutation", {"const std::vector<int64_t> &", "to_attribute({})"}},
    {"axis_pairs", {"const AxisPairs &", "to_attribute({})", "no_axis_pairs"}},
    {"padding", {"const WindowPadding &", "{}.attribute", "default_padding"}},
};

// Appends an underscore to keywords of C++, to names that headers of Windows and X11 define as macros, and to the namespace std.
std::string parameter_name(const std::string &name) {
    static const std::set<std::string> reserved{
        "alignas",  "alignof", "and",      "and_eq",   "asm",       "auto",   "bitand",   "bitor",    "bool",      "break",    "case",
        "catch",    "char",    "class",    "compl",    "concept",   "const",  "continue", "decltype", "default",   "delete",   "do",
        "double",   "else",    "enum",     "explicit", "export",    "extern", "false",    "far",      "float",     "for",      "friend",
        "goto",     "if",      "inline",   "int",      "interface", "linux",  "long",     "mutable",  "namespace", "near",     "new",
        "noexcept", "not",     "not_eq",   "nullptr",  "operator",  "or",     "or_eq",    "private",  "protected", "public",   "register",
        "requires", "return",  "short",    "signed",   "sizeof",    "small",  "static",   "std",      "struct",    "switch",   "template",
        "this",     "throw",   "true",     "try",      "typedef",   "typeid", "typename", "union",    "unix",      "unsigned", "using",
        "virtual",  "void",    "volatile", "where",    "while",     "xor",    "xor_eq"};
    return reserved.contains(name) ? name + "_" : name;
}

// Returns the declared name of a function. Brackets keep min and max from a macro with arguments, such as those of windows.h.
std::string declarator(const std::string &function) { return function == "min" || function == "max" ? "(" + function + ")" : function; }

// Axes that a rule requires are optional here. The default is all axes.
bool may_be_left_out(const AttributeSpec &attribute) { return !attribute.is_required() || attribute.type == "axes"; }

// Returns the default of a parameter, or nothing for a std::optional.
const char *default_of(const AttributeSpec &attribute) {
    const bool is_last = attribute.type == "axes" && attribute.default_value == to_attribute(std::vector<int64_t>{-1});
    return is_last ? "last_axis" : parameter_types.at(attribute.type).left_out;
}

std::string parameter_of(const AttributeSpec &attribute, const std::string &name) {
    const ParameterType &type = parameter_types.at(attribute.type);
    std::string plain = type.type;
    if (!may_be_left_out(attribute)) return plain + (plain.ends_with("&") ? "" : " ") + name;
    if (const char *left_out = default_of(attribute)) return fmt::format("{}{} = {}", plain, name, left_out);
    plain = plain.starts_with("const ") ? plain.substr(6, plain.size() - 8) : plain;
    return fmt::format("const std::optional<{}> &{} = {{}}", plain, name);
}

std::string statement_of(const AttributeSpec &attribute, const std::string &name) {
    const ParameterType &type = parameter_types.at(attribute.type);
    const char *left_out = default_of(attribute);
    const bool is_optional = may_be_left_out(attribute) && !left_out;
    const std::string value = fmt::format(fmt::runtime(type.conversion), is_optional ? "(*" + name + ")" : name),
                      set = fmt::format("attributes[\"{}\"] = {};\n", attribute.name, value);
    if (!may_be_left_out(attribute)) return "    " + set;
    return fmt::format("    if ({}{}) {}", name, is_optional ? "" : fmt::format(" != {}", left_out), set);
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
        parameters += operand.variadic ? fmt::format("const std::vector<Operand> &{}, ", parameter_name(operand.name))
                                       : fmt::format("const Operand &{}, ", parameter_name(operand.name));
        if (!operand.variadic) operands += parameter_name(operand.name) + ", ";
    }
    for (const AttributeSpec &attribute : rule.attributes) {
        const std::string name = parameter_name(attribute.name) + (rule.operand_index(attribute.name) >= 0 ? "_" : "");
        (may_be_left_out(attribute) ? optional : required) += parameter_of(attribute, name) + ", ";
        sets += statement_of(attribute, name);
    }
    const std::string all = parameters + required + optional + "const std::source_location &place = std::source_location::current()";
    std::string list = variadic
                           ? fmt::format("    std::vector<Operand> list{{{0}}};\n    list.insert(list.end(), {1}.begin(), {1}.end());\n",
                                         operands, parameter_name(rule.operands.back().name))
                           : fmt::format("    const std::vector<Operand> list{{{}}};\n", operands);
    const auto [type, call] = returned_by(rule);
    return fmt::format(
        "/// {}\ninline {} {}({}) {{\n    Attributes attributes;\n{}{}    return {}(\"{}\", list, attributes, place);\n}}\n\n", rule.doc,
        type, declarator(function_name(rule)), all, sets, list, call, rule.op);
}

} // namespace

std::string function_name(const Rule &rule) {
    // Next to `using namespace scalide`, a function std would be ambiguous with the namespace.
    return rule.op == "std" ? "stddev" : parameter_name(rule.op);
}

std::string operators_header(const Rulebook &rulebook) {
    std::string text = "// Generated by scalide rules --header.\n#pragma once\n#include \"scalide/tensor.h\"\n#include <optional>\n\n"
                       "namespace scalide {\n\n";
    for (const Rule *rule : rulebook.rules()) {
        if (rule->op != "constant" && rule->op != "size") text += function_of(*rule);
    }
    return text + "}  // namespace scalide\n";
}

} // namespace scalide
