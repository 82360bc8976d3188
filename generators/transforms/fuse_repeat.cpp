#include "transforms/fuse_repeat.h"
#include "expr/base_operators.h"
#include <algorithm>

namespace scalide {

namespace {

constexpr int most_repeated_cost = 2;
constexpr double traffic_for_one_result_less = 2;

std::set<int> reading_groups(const Groups &groups, ValueId value) {
    std::set<int> found;
    for (const Read &read : groups.graph().readers(value)) found.insert(groups.group_of(read.reader));
    return found;
}

bool is_argument(const Groups &groups, ValueId value) { return groups.graph().producer(value) < 0; }

bool is_overwritten(const Program &program, ValueId argument) {
    return std::ranges::any_of(program.arguments, [&](const Argument &a) { return a.value == argument && a.inout; });
}

/// True when `value` is in memory while `reader` runs, whether `reader` needs it or not.
bool is_at_hand(const Groups &groups, ValueId value, int reader) {
    if (is_argument(groups, value)) return !is_overwritten(groups.program(), value);
    return std::ranges::any_of(reading_groups(groups, value), [&](int group) {
        return group != groups.producer_group(value) && (group == reader || !groups.has_path(group, reader));
    });
}

bool is_cheaper_to_repeat(const Groups &groups, int node) {
    const Program &program = groups.program();
    const FuseGraph &graph = groups.graph();
    const Node &n = program.nodes[node];
    if (find_base_operator(n.op)->shape != Shape::elementwise || is_rounding(program, n) || cost_of(n) > most_repeated_cost) return false;
    if (program.type(n.results[0]).is_scalar()) return false;
    const std::set<int> readers = reading_groups(groups, n.results[0]);
    const double bytes = graph.sizes().bytes(program.type(n.results[0]));
    double saved = bytes * static_cast<double>(1 + readers.size()), added = 0;
    for (int reader : readers)
        for (const Read &read : graph.reads(node)) {
            const std::vector<ValueId> inputs = groups.inputs(reader);
            if (reader == groups.group_of(node) || std::ranges::find(inputs, read.value) != inputs.end()) continue;
            if (!is_at_hand(groups, read.value, reader)) return false;
            added += graph.sizes().bytes(program.type(read.value));
        }
    return added <= traffic_for_one_result_less * saved;
}

} // namespace

std::set<int> cheaper_to_repeat(const Groups &groups) {
    std::set<int> found;
    for (int group = 0; group < groups.size(); ++group)
        for (ValueId value : groups.outputs(group))
            if (!groups.graph().is_result(value) && is_cheaper_to_repeat(groups, groups.graph().producer(value)))
                found.insert(groups.graph().producer(value));
    return found;
}

} // namespace scalide
