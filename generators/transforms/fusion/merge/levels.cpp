#include "transforms/fusion/merge/levels.h"
#include "transforms/fusion/merge/order.h"
#include <algorithm>
#include <cmath>
#include <map>

namespace scalide {

namespace {

/// Returns for each member its level: the other groups between which it can run. A member that overwrites an argument runs one level after
/// the argument's readers.
std::vector<int> levels(const Groups &groups, const std::vector<bool> &is_member) {
    std::vector<int> level(groups.size());
    for (int group : run_order(groups)) {
        for (int earlier : groups.before(group)) {
            const bool is_next = is_member[group] && (!is_member[earlier] || groups.reads_between(earlier, group).empty()); // only ordered
            level[group] = std::max(level[group], level[earlier] + is_next);
        }
    }
    return level;
}

/// Moves a level into the next one if nothing needs its values before. This saves a kernel.
void sink_levels(const Groups &groups, const std::vector<bool> &is_member, std::vector<int> &level) {
    std::map<int, std::set<int>> by_level;
    for (int group = 0; group < groups.size(); ++group)
        if (is_member[group]) by_level[level[group]].insert(group);
    for (auto here = by_level.begin(); here != by_level.end() && std::next(here) != by_level.end(); ++here) {
        const auto next = std::next(here);
        const auto can_wait = [&](int group) {
            return std::ranges::all_of(groups.after(group), [&](int later) {
                const bool only_first = is_member[later] && groups.reads_between(group, later).empty();
                return here->second.contains(later) || level[later] - only_first >= next->first;
            });
        };
        if (!std::ranges::all_of(here->second, can_wait)) continue;
        for (int group : here->second) level[group] = next->first;
        next->second.merge(here->second);
    }
}

/// Sorts the groups of a level so that each comes soon after the groups that it depends on. Consecutive parts of this order then share few
/// values.
std::vector<int> by_need(const Groups &groups, const std::vector<int> &level) {
    const std::set<int> members(level.begin(), level.end());
    std::set<int> placed;
    std::vector<int> order;
    for (int group : level) {
        if (std::ranges::any_of(groups.after(group), [&](int later) { return members.contains(later); })) continue;
        for (std::vector<int> todo{group}; !todo.empty();) {
            const int next = todo.back();
            for (int earlier : groups.before(next))
                if (members.contains(earlier) && !placed.contains(earlier)) todo.push_back(earlier);
            if (todo.back() != next) continue;
            todo.pop_back();
            if (placed.insert(next).second) order.push_back(next);
        }
    }
    return order;
}

/// Adds the nodes of a group, and the floating nodes that its kernel recomputes.
void add_nodes(const Groups &groups, int group, std::set<int> &nodes) {
    std::vector<int> todo = groups[group].nodes;
    while (!todo.empty()) {
        const int node = todo.back();
        todo.pop_back();
        if (!nodes.insert(node).second) continue;
        for (const ValueId operand : groups.program().nodes[node].operands)
            if (const int behind = groups.graph().producer(operand); behind >= 0 && groups.graph().is_floating(behind))
                todo.push_back(behind);
    }
}

/// Returns 1, and more for a node whose elements the kernel may store: 256 of them count as a node.
double size_of_node(const FuseGraph &graph, int node) {
    constexpr int elements_of_node = 256;
    const ValueId value = graph.program().nodes[node].results[0];
    const Shape shape = graph.shape(node);
    const bool is_sum = shape == Shape::reduce || shape == Shape::contract;
    const bool is_stored = !graph.is_floating(node) && (is_sum || graph.is_result(value) || graph.readers(value).size() > 1);
    return is_stored ? 1 + std::floor(graph.elements(value) / elements_of_node) : 1;
}

/// Splits the groups of a level into parts that fit into one kernel each. A part depends only on earlier parts.
std::vector<std::vector<int>> cut_level(const Groups &groups, std::vector<int> level, int most_nodes) {
    std::ranges::sort(level, {}, [&](int group) { return groups[group].nodes.front(); });
    std::vector<std::vector<int>> parts;
    std::set<int> nodes;
    double size = 0;
    for (const int group : by_need(groups, level)) {
        std::set<int> own;
        add_nodes(groups, group, own);
        double more = 0, all = 0;
        for (const int node : own) {
            all += size_of_node(groups.graph(), node);
            if (!nodes.contains(node)) more += size_of_node(groups.graph(), node);
        }
        const bool begins = parts.empty() || size + more > most_nodes;
        if (begins) {
            parts.emplace_back();
            nodes.clear();
        }
        size = begins ? all : size + more;
        nodes.merge(own);
        parts.back().push_back(group);
    }
    return parts;
}

} // namespace

std::vector<std::vector<int>> parts_of_levels(const Groups &groups, const std::vector<bool> &is_member, int most_nodes) {
    std::vector<int> level = levels(groups, is_member);
    sink_levels(groups, is_member, level);
    std::map<int, std::vector<int>> by_level;
    for (int group : run_order(groups))
        if (is_member[group]) by_level[level[group]].push_back(group);
    std::vector<std::vector<int>> parts;
    for (auto &[number, together] : by_level)
        std::ranges::move(cut_level(groups, std::move(together), most_nodes), std::back_inserter(parts));
    return parts;
}

} // namespace scalide
