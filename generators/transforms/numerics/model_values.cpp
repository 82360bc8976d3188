#include "transforms/numerics/model_values.h"
#include "transforms/analysis/directions.h"
#include <map>

namespace scalide {

std::set<ValueId> model_values(const Program &program) {
    const std::vector<Direction> directions = directions_of(program);
    std::set<ValueId> made;
    for (size_t i = 0; i < program.nodes.size(); i++)
        if (directions[i] != Direction::update) made.insert(program.nodes[i].results.begin(), program.nodes[i].results.end());
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
