#include "ir/rewrite.h"

#include <algorithm>

namespace scalide {

Rewriter::Rewriter(const Program &source) : source_(source), map_(source.values.size(), -1) {
    result_.name = source.name;
    result_.attributes = source.attributes;
    result_.symbols = source.symbols;
    result_.programs = source.programs;
    result_.values.reserve(source.values.size());
    result_.nodes.reserve(source.nodes.size());
}

void Rewriter::copy_arguments() {
    for (const Argument &argument : source_.arguments) {
        const Value &value = source_.values[argument.value];
        map(argument.value, add_value(result_, value.name, value.type, value.part));
        result_.arguments.push_back(argument);
        result_.arguments.back().value = (*this)(argument.value);
    }
}

void Rewriter::copy(const Node &node) {
    Node fresh = node;
    fresh.operands = (*this)(node.operands);
    fresh.results.clear();
    for (const ValueId old : node.results) {
        const Value &value = source_.values[old];
        fresh.results.push_back(add_value(result_, value.name, value.type, value.part));
        map(old, fresh.results.back());
    }
    result_.nodes.push_back(std::move(fresh));
}

void Rewriter::copy_results() {
    for (const Result &result : source_.results) {
        Result fresh = result;
        fresh.value = (*this)(result.value);
        result_.results.push_back(std::move(fresh));
    }
}

ValueId Rewriter::operator()(ValueId old) const {
    if (!is_mapped(old))
        throw InternalError("internal error: value " + source_.value_name(old) + " of program " + source_.name +
                            " has not been rewritten yet");
    return map_[old];
}

std::vector<ValueId> Rewriter::operator()(const std::vector<ValueId> &old) const {
    std::vector<ValueId> fresh;
    for (const ValueId value : old) fresh.push_back((*this)(value));
    return fresh;
}

void Rewriter::map(ValueId old, ValueId fresh) { map_[old] = fresh; }

bool Rewriter::is_mapped(ValueId old) const { return map_[old] >= 0; }

Program Rewriter::take() { return std::move(result_); }

namespace {

/// Returns for each value whether a result depends on it.
std::vector<bool> live_values(const Program &program) {
    std::vector<bool> live(program.values.size(), false);
    for (const Result &result : program.results) live[result.value] = true;
    mark_sources(program, live);
    return live;
}

} // namespace

Program remove_dead_nodes(Program program) {
    const std::vector<bool> live = live_values(program);
    std::erase_if(program.nodes,
                  [&](const Node &node) { return std::ranges::none_of(node.results, [&](ValueId value) { return live[value]; }); });
    std::vector<ValueId> fresh(program.values.size(), -1);
    std::vector<Value> values;
    values.reserve(program.values.size());
    const auto keep = [&](ValueId &value) {
        values.push_back(std::move(program.values[value]));
        fresh[value] = static_cast<ValueId>(values.size()) - 1;
        value = fresh[value];
    };
    for (Argument &argument : program.arguments) keep(argument.value);
    const auto read = [&](ValueId &value) {
        if (fresh[value] < 0) throw InternalError("internal error: program " + program.name + ": a node reads what is made behind it");
        value = fresh[value];
    };
    for (Node &node : program.nodes) {
        std::ranges::for_each(node.operands, read);
        std::ranges::for_each(node.results, keep);
    }
    for (Result &result : program.results) read(result.value);
    program.values = std::move(values);
    program.names = Names();
    return program;
}

} // namespace scalide
