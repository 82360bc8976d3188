#include "transforms/numerics/model_values.h"
#include <algorithm>
#include <map>

namespace scalide {

namespace {

/// Returns the values on which outputs or gradients depend.
std::vector<bool> needed_by_model(const Program &program) {
    std::vector<bool> needed(program.values.size());
    for (const Result &result : program.results)
        if (result.argument < 0) needed[result.value] = true;
    for (const Node &node : program.nodes)
        if (node.role == Role::cotangent)
            for (const ValueId result : node.results) needed[result] = true;
    mark_sources(program, needed);
    return needed;
}

} // namespace

std::set<ValueId> model_values(const Program &program) {
    const std::vector<bool> is_needed = needed_by_model(program);
    std::vector<bool> from_gradient(program.values.size());
    for (const Node &node : program.nodes) {
        const bool depends =
            node.role == Role::cotangent || std::ranges::any_of(node.operands, [&](ValueId v) { return from_gradient[v]; });
        for (const ValueId result : node.results) from_gradient[result] = depends;
    }
    std::set<ValueId> made;
    for (const Node &node : program.nodes) {
        const bool is_read = std::ranges::any_of(node.results, [&](ValueId value) { return is_needed[value]; });
        const bool is_gradient = node.role == Role::cotangent;
        if (is_gradient || (is_read && !from_gradient[node.results[0]])) made.insert(node.results.begin(), node.results.end());
    }
    return made;
}

std::set<ValueId> optimizer_states(const Program &program, const PolicyRoles &roles) {
    const std::vector<bool> of_model = needed_by_model(program);
    std::vector<bool> of_updates(program.values.size());
    std::map<ValueId, int> forms; // how many results are forms of a value
    for (const Result &result : program.results) {
        if (result.argument >= 0 && of_model[program.arguments[result.argument].value]) of_updates[result.value] = true;
        forms[roles.root(result.value)]++;
    }
    mark_sources(program, of_updates);
    std::set<ValueId> found;
    for (const Result &result : program.results) {
        if (result.argument < 0) continue;
        const ValueId value = program.arguments[result.argument].value;
        if (!of_model[value] && of_updates[value] && forms[roles.root(result.value)] == 1) found.insert(value);
    }
    return found;
}

} // namespace scalide
