#include "ir/program.h"

#include "ir/rewrite.h"
#include "ir/text.h"

#include <algorithm>
#include <charconv>

namespace scalide {

namespace {

// The number that `taken` has after `name`: 0 for `name` itself, -1 when it is another name.
int64_t suffix_of(std::string_view taken, std::string_view name) {
    if (!taken.starts_with(name)) return -1;
    const std::string_view digits = taken.substr(name.size());
    if (digits.empty()) return 0;
    int64_t number = -1;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    const bool plain = error == std::errc() && end == digits.data() + digits.size() && digits[0] != '0' && digits[0] != '-';
    return plain ? number : -1;
}

std::string fresh_name(const Program &program, const std::string &name) {
    // Most names are free: a look at sizes and last characters passes over nearly all values.
    std::vector<int64_t> suffixes;
    for (const Value &value : program.values) {
        if (value.name.size() < name.size() || (!name.empty() && value.name[name.size() - 1] != name.back())) continue;
        const int64_t suffix = suffix_of(value.name, name);
        if (suffix >= 0) suffixes.push_back(suffix);
    }
    std::ranges::sort(suffixes);
    int64_t number = 0; // the first that is missing
    for (int64_t suffix : suffixes) number += suffix == number;
    return number == 0 ? name : name + std::to_string(number);
}

} // namespace

const Program &Program::program(const std::string &name) const {
    const auto found = std::ranges::find(programs, name, &Program::name);
    internal_check(found != programs.end(), "program " + this->name + " has no sub-program " + name);
    return *found;
}

ValueId add_value(Program &program, const std::string &name, Type type) {
    program.values.push_back({fresh_name(program, name), std::move(type)});
    return static_cast<ValueId>(program.values.size()) - 1;
}

std::vector<ValueId> add_node(Program &program, Node node, const std::vector<Type> &types, const std::string &name) {
    node.results.clear();
    for (const Type &type : types) node.results.push_back(add_value(program, name.empty() ? node.op : name, type));
    program.nodes.push_back(std::move(node));
    return program.nodes.back().results;
}

void declare_symbols(Program &program) {
    for (const Argument &argument : program.arguments) {
        for (const Extent &extent : program.type(argument.value).shape) {
            for (const std::string &name : extent.symbols()) {
                const bool known = std::ranges::find(program.symbols, name, &Symbol::name) != program.symbols.end();
                if (!known) program.symbols.push_back({name});
            }
        }
    }
}

std::vector<int> count_uses(const Program &program) {
    std::vector<int> uses(program.values.size(), 0);
    for (const Node &node : program.nodes) {
        for (const ValueId operand : node.operands) uses[operand]++;
    }
    for (const Result &result : program.results) uses[result.value]++;
    return uses;
}

std::vector<int> producers(const Program &program) {
    std::vector<int> nodes(program.values.size(), -1);
    for (size_t i = 0; i < program.nodes.size(); i++) {
        for (const ValueId result : program.nodes[i].results) nodes[result] = static_cast<int>(i);
    }
    return nodes;
}

bool equal(const Program &a, const Program &b) { return to_string(a) == to_string(b); }

} // namespace scalide
