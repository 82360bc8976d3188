#include "transforms/fusion/combine_collectives.h"
#include "expr/base_operators.h"
#include "ir/regions.h"
#include "transforms/fusion/split_regions.h"
#include <algorithm>
#include <climits>
#include <map>
#include <numeric>
#include <set>

namespace scalide {

namespace {

/// Returns for each node the largest number of barriers on a path to it, without itself. `least`: a node has at least this number.
std::vector<int> depths_of(const Program &program, std::vector<int> least) {
    const std::vector<int> makers = producers(program);
    for (size_t i = 0; i < least.size(); i++) {
        for (const ValueId operand : program.nodes[i].operands) {
            const int maker = makers[static_cast<size_t>(operand)];
            if (maker < 0) continue;
            const auto from = static_cast<size_t>(maker);
            least[i] = std::max(least[i], least[from] + is_barrier(program.nodes[from]));
        }
    }
    return least;
}

/// What must be equal so that collectives are one: operator and group.
using Kind = std::pair<std::string, std::string>;

/// Appends operands and results. The combined node has no attributes but the group, because the types of its results say the rest.
void join(Node &into, const Node &other) {
    into.operands.insert(into.operands.end(), other.operands.begin(), other.operands.end());
    into.results.insert(into.results.end(), other.results.begin(), other.results.end());
    into.attributes = {{"group", other.attributes.at("group")}};
}

Kind kind_of(const Node &node) { return {node.op, to_string(node.attributes.at("group").integer)}; }

/// Delays each collective to the last collective of its kind that runs before its results are needed, as the mean loss runs with the
/// gradients. Returns the depths of the nodes.
std::vector<int> late_depths(const Program &program) {
    std::vector<int> depths = depths_of(program, std::vector<int>(program.nodes.size(), 0));
    std::map<Kind, std::set<int>> known; // the depths of each kind
    const auto is_movable = [&](size_t i) { return is_collective(program.nodes[i].op); };
    for (size_t i = 0; i < depths.size(); i++)
        if (is_movable(i)) known[kind_of(program.nodes[i])].insert(depths[i]);
    std::vector<int> latest(program.values.size(), INT_MAX); // by value: the largest depth of a node that makes it
    for (size_t i = depths.size(); i-- > 0;) {
        const Node &node = program.nodes[i];
        int limit = INT_MAX;
        for (const ValueId result : node.results) limit = std::min(limit, latest[static_cast<size_t>(result)]);
        if (is_barrier(node) && limit != INT_MAX) limit--;
        if (is_movable(i)) depths[i] = *std::prev(known.at(kind_of(node)).upper_bound(limit));
        if (is_barrier(node)) limit = depths[i];
        for (const ValueId operand : node.operands) {
            int &last = latest[static_cast<size_t>(operand)];
            last = std::min(last, limit);
        }
    }
    return depths_of(program, std::move(depths));
}

} // namespace

Program combine_collectives(const Program &program) {
    Program combined = program;
    for (Node &node : combined.nodes) rewrite_regions(node, program, [](const Program &region) { return combine_collectives(region); });
    if (std::ranges::none_of(program.nodes, [](const Node &node) { return is_collective(node.op); })) return combined;
    const std::vector<int> depths = late_depths(program);
    std::vector<size_t> order(depths.size());
    std::iota(order.begin(), order.end(), size_t(0));
    // Barriers run after everything that needs no more of them, so that few values wait in memory.
    std::ranges::stable_sort(order, {}, [&](size_t i) { return std::pair(depths[i], is_barrier(program.nodes[i])); });
    std::map<std::pair<int, Kind>, size_t> first; // the combined node of each depth and kind
    std::vector<Node> nodes;
    for (const size_t i : order) {
        const Node &node = combined.nodes[i];
        if (is_collective(node.op)) {
            const auto [found, is_new] = first.try_emplace({depths[i], kind_of(node)}, nodes.size());
            if (!is_new) {
                join(nodes[found->second], node);
                continue;
            }
        }
        nodes.push_back(node);
    }
    combined.nodes = std::move(nodes);
    return combined;
}

} // namespace scalide
