#include "ir/program.h"

#include "ir/regions.h"
#include "ir/rewrite.h"
#include "ir/text.h"

#include <algorithm>

namespace scalide {

const Program &Program::program(const std::string &name) const {
    const auto found = std::ranges::find(programs, name, &Program::name);
    internal_check(found != programs.end(), "program " + this->name + " has no sub-program " + name);
    return *found;
}

ValueId add_value(Program &program, const std::string &name, Type type, ArrayPart part) {
    program.values.push_back({program.names.claim(program.values, name), std::move(type), std::move(part)});
    return static_cast<ValueId>(program.values.size()) - 1;
}

bool rename_value(Program &program, ValueId value, const std::string &name) {
    if (!program.names.rename(program.values, value, name)) return false;
    program.values[value].name = name;
    return true;
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

namespace {

Attribute with_values(Attribute attribute, const Extent::Bindings &values) {
    attribute.integer = attribute.integer.with_values(values);
    for (Attribute &each : attribute.list) each = with_values(std::move(each), values);
    return attribute;
}

Program with_own_values(Program program, const Extent::Bindings &values) {
    for (Value &value : program.values)
        for (Extent &extent : value.type.shape) extent = extent.with_values(values);
    for (Node &node : program.nodes) {
        const Attributes attributes = node.attributes;
        for (const auto &[name, attribute] : attributes) node.attributes[name] = with_values(attribute, values);
    }
    std::erase_if(program.symbols, [&](const Symbol &symbol) { return values.contains(symbol.name); });
    return program;
}

} // namespace

Program with_values(Program program, const Extent::Bindings &values) {
    program = map_regions(std::move(program), [&](Program region) { return with_own_values(std::move(region), values); });
    return with_own_values(std::move(program), values);
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

void mark_sources(const Program &program, std::vector<bool> &marked) {
    for (auto node = program.nodes.rbegin(); node != program.nodes.rend(); ++node) {
        if (std::ranges::none_of(node->results, [&](ValueId result) { return marked[result]; })) continue;
        for (const ValueId operand : node->operands) marked[operand] = true;
    }
}

bool equal(const Program &a, const Program &b) { return to_string(a) == to_string(b); }

} // namespace scalide
