#include "ir/rewrite.h"

#include <algorithm>

namespace scalide {

Rewriter::Rewriter(const Program &source) : source_(source), map_(source.values.size(), -1) {
    result_.name = source.name;
    result_.attributes = source.attributes;
    result_.symbols = source.symbols;
    result_.programs = source.programs;
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

Program remove_dead_nodes(const Program &program) {
    std::vector<bool> live(program.values.size(), false);
    for (const Result &result : program.results) live[result.value] = true;
    const auto is_live = [&](const Node &node) { return std::ranges::any_of(node.results, [&](ValueId value) { return live[value]; }); };
    for (auto node = program.nodes.rbegin(); node != program.nodes.rend(); ++node) {
        if (!is_live(*node)) continue;
        for (const ValueId operand : node->operands) live[operand] = true;
    }
    Rewriter rewriter(program);
    rewriter.copy_arguments();
    for (const Node &node : program.nodes) {
        if (is_live(node)) rewriter.copy(node);
    }
    rewriter.copy_results();
    return rewriter.take();
}

} // namespace scalide
