#include "ir/dtype_advice.h"
#include "rulebook/nearest.h"
#include "tool/kernel_list.h"
#include "tool/kernel_words.h"
#include <fmt/format.h>

namespace scalide {

namespace {

constexpr const char *short_form = "[NAME=]OPERATOR[(ATTRIBUTE=VALUE, ...)]:TYPE[,TYPE...], such as softmax(axes=[1]):f32[b,n]";

[[noreturn]] void fail_short(const std::string &text) {
    throw UserError({{}, "--operators", std::string("must be ") + short_form, "'" + text + "'", ""});
}

std::string trimmed(const std::string &text) {
    const size_t first = text.find_first_not_of(' ');
    return first == std::string::npos ? "" : text.substr(first, text.find_last_not_of(' ') - first + 1);
}

/// Returns "a: 1, b: 2" for "a=1, b=2".
std::string attributes_of(const std::string &given, const std::string &text) {
    std::string attributes;
    for (const std::string &each : split_outside_brackets(given, ",")) {
        const size_t sign = each.find('=');
        if (sign == std::string::npos) fail_short(text);
        attributes += fmt::format("{}{}: {}", attributes.empty() ? "" : ", ", trimmed(each.substr(0, sign)), each.substr(sign + 1));
    }
    return attributes;
}

/// The types of the operands. Further types belong to the last operand, if it is variadic: their shapes are a list.
struct ShortTypes {
    std::vector<std::string> shapes, dtypes;
};

ShortTypes types_of(const std::string &given, const std::string &op, const Rule &rule, const std::string &text) {
    ShortTypes types{std::vector<std::string>(rule.operands.size()), std::vector<std::string>(rule.operands.size())};
    size_t count = 0;
    for (const std::string &type : split_outside_brackets(given, ",")) {
        const std::string each = trimmed(type);
        const size_t open = each.find('['), place = std::min(count++, types.shapes.size() - 1);
        if (open == std::string::npos || !each.ends_with(']')) fail_short(text);
        types.shapes[place] += (types.shapes[place].empty() ? "" : ", ") + each.substr(open);
        types.dtypes[place] = each.substr(0, open);
    }
    if (count >= types.shapes.size() && (count == types.shapes.size() || rule.operands.back().variadic)) return types;
    std::vector<std::string> names;
    for (const OperandSpec &operand : rule.operands) names.push_back(operand.name);
    throw UserError({{}, "--operators", fmt::format("'{}' must have a type for each of {}", op, joined(names)), "'" + text + "'", ""});
}

/// Returns the kernel in the YAML form, so that one reader checks both forms.
std::string to_yaml(const std::string &text, const Rulebook &rulebook) {
    const std::vector<std::string> halves = split_outside_brackets(text, ":");
    if (halves.size() != 2) fail_short(text);
    std::string head = trimmed(halves[0]), name, attributes;
    const size_t equals = head.find('='), bracket = head.find('(');
    if (equals < bracket) {
        name = trimmed(head.substr(0, equals));
        head = trimmed(head.substr(equals + 1));
    }
    if (const size_t open = head.find('('); open != std::string::npos) {
        if (!head.ends_with(')')) fail_short(text);
        attributes = attributes_of(head.substr(open + 1, head.size() - open - 2), text);
        head = trimmed(head.substr(0, open));
    }
    const Rule *rule = callable_rule(rulebook, head, {});
    const auto [shapes, dtypes] = types_of(halves[1], head, *rule, text);
    std::string shape_list, dtype_list;
    for (size_t i = 0; i < shapes.size(); i++) {
        const OperandSpec &operand = rule->operands[i];
        shape_list += fmt::format("{}{}: {}", i ? ", " : "", operand.name, operand.variadic ? "[" + shapes[i] + "]" : shapes[i]);
        dtype_list += fmt::format("{}{}: {}", i ? ", " : "", operand.name, dtypes[i]);
    }
    if (name.empty()) name = fmt::format("{}_{}", head, dtypes[0]);
    return fmt::format("[{{op: {}, name: {}, attributes: {{{}}}, shapes: {{{}}}, dtypes: {{{}}}}}]", head, name, attributes, shape_list,
                       dtype_list);
}

} // namespace

std::vector<std::string> split_outside_brackets(const std::string &text, const std::string &separators) {
    std::vector<std::string> parts{""};
    int depth = 0;
    for (const char c : text) {
        depth += (c == '(' || c == '[' || c == '{') - (c == ')' || c == ']' || c == '}');
        if (depth == 0 && separators.find(c) != std::string::npos)
            parts.emplace_back();
        else
            parts.back() += c;
    }
    return parts;
}

std::vector<std::string> operator_words(const std::string &option) {
    std::vector<std::string> words;
    for (const std::string &group : split_outside_brackets(option, ";")) {
        bool is_first = true;
        for (const std::string &part : split_outside_brackets(group, ",")) {
            const std::string word = trimmed(part);
            const std::string dtype = trimmed(word.substr(0, word.find('['))); // a wrong dtype is reported as one
            const bool is_type = !is_first && word.ends_with(']') && (parse_dtype(dtype) || !dtype_advice(dtype).empty());
            if (is_type)
                words.back() += "," + word;
            else
                words.push_back(word);
            is_first = false;
        }
    }
    return words;
}

LibraryKernel read_short_kernel(const std::string &text, const Rulebook &rulebook, const PolicyLoader &load) {
    try {
        LibraryKernel kernel = read_kernels(to_yaml(text, rulebook), text, rulebook, load)[0];
        kernel.location = kernel.steps[0].location = {text};
        return kernel;
    } catch (const UserError &error) {
        Message message = error.message();
        if (message.location.file == text) message.location = {text};
        throw UserError(message);
    }
}

} // namespace scalide
