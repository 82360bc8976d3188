#include "transforms/fusion/merge/repeat.h"
#include "expr/base_operators.h"
#include "transforms/fusion/groups/overwrites.h"
#include <algorithm>

namespace scalide {

namespace {

constexpr int most_repeated_cost = 3;
/// Limit for a new low-precision state, which is needed twice: for its amax, and where it is written. An Adam step is memory-bound.
constexpr int most_state_cost = 60;
constexpr double traffic_for_one_result_less = 2;

std::set<int> reading_groups(const Groups &groups, ValueId value) {
    std::set<int> found;
    for (const Read &read : groups.graph().readers(value)) found.insert(groups.group_of(read.reader));
    return found;
}

bool is_overwritten(const Program &program, ValueId argument) {
    return std::ranges::any_of(program.arguments, [&](const Argument &a) { return a.value == argument && a.inout; });
}

/// True if `value` is in memory while `reader` runs, whether `reader` needs it or not. A stored rank-0 value always is.
bool is_at_hand(const Groups &groups, ValueId value, int reader) {
    const int producer = groups.producer_group(value);
    if (producer < 0) return !is_overwritten(groups.program(), value);
    return std::ranges::any_of(groups.graph().readers(value), [&](const Read &read) {
        const int group = groups.group_of(read.reader);
        return group != producer && (group == reader || groups.program().type(value).is_scalar() || !groups.has_path(group, reader));
    });
}

/// True if an inout argument still holds its old value while `reader` runs. Either `reader` itself overwrites it, or it is a scale whose
/// copy can run later.
bool is_kept_for(const Groups &groups, ValueId argument, int reader) {
    const int writer = groups.graph().overwriter(argument);
    if (writer < 0 || groups.group_of(writer) == reader) return true;
    return groups.program().type(argument).is_scalar() && is_copy(groups.program(), groups.program().nodes[writer]);
}

/// True if `reader`, which writes a new state, can read `value` instead of the result of `node`. That is the old state, or a value that
/// another group stores and that stays in memory.
bool can_be_read(const Groups &groups, ValueId value, int node, int reader) {
    const int producer = groups.producer_group(value);
    return producer < 0 ? is_kept_for(groups, value, reader) : producer != groups.group_of(node) || is_at_hand(groups, value, reader);
}

/// The nodes that `reader` would run to compute a value itself, and the values that it would read for this.
struct Repetition {
    const std::set<int> &repeated; ///< nodes whose values are not stored any more: their readers run them too
    std::set<int> nodes = {};
    std::set<ValueId> reads = {};
    int cost = 0;
};

bool is_repeatable(const Program &program, int node) {
    const Node &n = program.nodes[node];
    return find_base_operator(n.op)->shape == Shape::elementwise && !is_rounding(program, n) && !program.type(n.results[0]).is_scalar();
}

/// Cost of the floating nodes before `node` that the caller of fusion chose to recompute.
int cost_before(const FuseGraph &graph, int node) {
    std::set<int> seen;
    std::vector<int> todo{node};
    int cost = 0;
    while (!todo.empty()) {
        const Node &n = graph.program().nodes[todo.back()];
        todo.pop_back();
        for (const ValueId operand : n.operands) {
            const int behind = graph.producer(operand);
            if (behind < 0 || !graph.is_floating(behind) || !seen.insert(behind).second) continue;
            if (graph.repeated().contains(behind)) cost += cost_of(graph.program().nodes[behind]);
            todo.push_back(behind);
        }
    }
    return cost;
}

/// Adds `node` and its producers to `repetition`. Costs add up along chains of recomputed nodes. Otherwise each step of an unrolled loop
/// would recompute its carry from the first step on. A new state is exempt: it may depend on other states (Adam's depends on two), and the
/// chain ends there.
bool repeat(const Groups &groups, int node, int reader, Repetition &repetition, bool is_state) {
    const Program &program = groups.program();
    if (!is_repeatable(program, node)) return false;
    if (!repetition.nodes.insert(node).second) return true;
    repetition.cost += cost_of(program.nodes[node]) + (is_state ? 0 : cost_before(groups.graph(), node));
    const auto is_there = [&](const Read &read) {
        const int behind = groups.graph().producer(read.value);
        if (!is_state && repetition.repeated.contains(behind)) return repeat(groups, behind, reader, repetition, is_state);
        if (is_state ? can_be_read(groups, read.value, node, reader) : is_at_hand(groups, read.value, reader)) {
            repetition.reads.insert(read.value);
            return true;
        }
        return behind >= 0 && groups.group_of(behind) == groups.group_of(node) && repeat(groups, behind, reader, repetition, is_state);
    };
    return std::ranges::all_of(groups.graph().reads(node), is_there) &&
           repetition.cost <= (is_state ? most_state_cost : most_repeated_cost);
}

/// Returns false if `reader` would overwrite an argument whose elements it still needs at other indices, for example through a
/// transposition.
bool is_in_place(const Groups &groups, const Repetition &repetition, ValueId value, int reader) {
    const FuseGraph &graph = groups.graph();
    const auto is_overwritten_here = [&](ValueId read) {
        const int writer = graph.overwriter(read);
        return writer >= 0 && groups.group_of(writer) == reader && !groups.program().type(read).is_scalar();
    };
    if (std::ranges::none_of(repetition.reads, is_overwritten_here)) return true;
    const auto is_elsewhere = [&](const Read &read) {
        const int producer = graph.producer(read.value);
        const bool matters = producer < 0 ? is_overwritten_here(read.value) : read.value == value || repetition.nodes.contains(producer);
        return matters && read.access != Access::same;
    };
    const auto reads_elsewhere = [&](int node) { return std::ranges::any_of(graph.reads(node), is_elsewhere); };
    return std::ranges::none_of(repetition.nodes, reads_elsewhere) && std::ranges::none_of(groups[reader].nodes, reads_elsewhere);
}

/// True if a value of this kernel that depends on `node` overwrites a low-precision array, which is the state of the next step.
bool makes_narrow_state(const Groups &groups, int node) {
    return std::ranges::any_of(following(groups, node), [&](int each) {
        return std::ranges::any_of(groups.graph().overwrites_by(each), [&](const Overwrite &overwrite) {
            const Type &type = groups.program().type(overwrite.argument);
            return !type.is_scalar() && size_of(type.dtype) < size_of(Dtype::f32);
        });
    });
}

/// Returns the nodes to recompute, in addition to `repeated`, so that the value of `node` need not be stored. Empty if this does not pay.
std::set<int> nodes_to_repeat(const Groups &groups, int node, const std::set<int> &repeated) {
    const FuseGraph &graph = groups.graph();
    const Program &program = groups.program();
    const ValueId value = program.nodes[node].results[0];
    const bool is_state = std::ranges::any_of(graph.readers(value), [&](const Read &read) {
        return groups.group_of(read.reader) != groups.group_of(node) && makes_narrow_state(groups, read.reader);
    });
    double saved = graph.bytes(value), added = 0;
    std::set<int> nodes;
    for (int reader : reading_groups(groups, value)) {
        if (reader == groups.group_of(node)) continue;
        Repetition repetition{repeated};
        if (!repeat(groups, node, reader, repetition, is_state) || !is_in_place(groups, repetition, value, reader)) return {};
        nodes.merge(repetition.nodes);
        saved += graph.bytes(value);
        const std::vector<ValueId> &inputs = groups.inputs(reader);
        for (ValueId read : repetition.reads)
            if (std::ranges::find(inputs, read) == inputs.end()) added += graph.bytes(read);
    }
    return added <= traffic_for_one_result_less * saved ? nodes : std::set<int>();
}

} // namespace

std::set<int> cheaper_to_repeat(const Groups &groups) {
    const FuseGraph &graph = groups.graph();
    std::set<int> found;
    for (int node = 0; node < std::ssize(groups.program().nodes); ++node) {
        if (graph.is_floating(node)) continue;
        const ValueId value = groups.program().nodes[node].results[0];
        const std::vector<ValueId> &outputs = groups.outputs(groups.group_of(node));
        const bool is_stored = std::ranges::find(outputs, value) != outputs.end();
        if (is_stored && !graph.is_result(value)) found.merge(nodes_to_repeat(groups, node, found));
    }
    return found;
}

} // namespace scalide
