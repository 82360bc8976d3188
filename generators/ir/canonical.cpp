#include "ir/rewrite.h"

#include <algorithm>
#include <set>

namespace scalide {

namespace {

void insert_symbols(std::set<std::string> &names, const Attribute &attribute) {
    const std::vector<std::string> own = attribute.integer.symbols();
    names.insert(own.begin(), own.end());
    for (const Attribute &element : attribute.list) insert_symbols(names, element);
}

std::set<std::string> used_symbols(const Program &program) {
    std::set<std::string> names;
    for (const Value &value : program.values) {
        for (const Extent &extent : value.type.shape) insert_symbols(names, extent);
    }
    for (const Node &node : program.nodes) {
        for (const auto &[key, attribute] : node.attributes) insert_symbols(names, attribute);
        for (const Region &region : node.regions) names.merge(used_symbols(*region));
    }
    for (const auto &[key, attribute] : program.attributes) insert_symbols(names, attribute);
    return names;
}

void rename_values(Program &program) {
    program.names = {};
    std::vector<bool> is_argument(program.values.size(), false);
    for (size_t i = 0; i < program.arguments.size(); i++) {
        program.values[program.arguments[i].value].name = "a" + std::to_string(i);
        program.arguments[i].part = {};
        is_argument[program.arguments[i].value] = true;
    }
    int count = 0;
    for (size_t i = 0; i < program.values.size(); i++) {
        if (!is_argument[i]) program.values[i].name = "v" + std::to_string(count++);
        program.values[i].part = {};
    }
    for (size_t i = 0; i < program.results.size(); i++) {
        Result &result = program.results[i];
        result.part = {};
        result.name = result.argument < 0 ? "r" + std::to_string(i) : "a" + std::to_string(result.argument);
    }
}

/// New names of sub-programs.
using NewNames = std::map<std::string, std::string>;

Program canonical(const Program &program, NewNames callees);

/// Renames the sub-programs of `program`, and what its nodes and their regions call.
void rename_programs(Program &program, NewNames &callees) {
    for (Program &callee : program.programs) {
        const std::string name = "p" + std::to_string(callees.size());
        callees[callee.name] = name;
        callee = canonical(callee, {});
        callee.name = name;
    }
    for (Node &node : program.nodes) {
        for (Region &region : node.regions) region = std::make_shared<const Program>(canonical(*region, callees));
        const auto attribute = node.attributes.find("program");
        if (attribute == node.attributes.end()) continue;
        const auto name = callees.find(attribute->second.word);
        if (name != callees.end()) node.attributes["program"] = name->second;
    }
}

Program canonical(const Program &program, NewNames callees) {
    // Copies live nodes in order, which also numbers the values in the order of their nodes.
    Program result = remove_dead_nodes(program);
    result.name = "kernel";
    const std::set<std::string> used = used_symbols(result);
    std::erase_if(result.symbols, [&](const Symbol &symbol) { return !used.contains(symbol.name); });
    for (Symbol &symbol : result.symbols) { // a kernel gets the values of its symbols, wherever they come from
        symbol.source = SymbolSource::arguments;
        symbol.group.clear();
        symbol.divided = 0;
    }
    std::ranges::sort(result.symbols, {}, &Symbol::name);
    for (Node &node : result.nodes) {
        node.scope.clear();
        node.role = Role::primal;
        node.location = {};
    }
    rename_values(result);
    rename_programs(result, callees);
    return result;
}

} // namespace

Program canonical(const Program &program) { return canonical(program, {}); }

} // namespace scalide
