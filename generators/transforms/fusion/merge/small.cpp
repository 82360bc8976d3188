#include "transforms/fusion/merge/small.h"
#include "kinds/small.h"
#include "transforms/fusion/merge/levels.h"
#include <algorithm>

namespace scalide {

namespace {

/// Limit for the nodes of a kernel, because Halide's compile time grows faster than their number. It also limits the stack: to 128 KiB,
/// because 256 elements of 4 bytes count as a node.
constexpr int most_nodes = 128;

/// True if the node, and the floating nodes that a kernel of it computes again, may be in a small kernel.
bool is_small(const FuseGraph &graph, int node) {
    const Program &program = graph.program();
    if (!why_not_small(program, program.nodes[node]).empty() || !graph.overwrites_by(node).empty()) return false;
    return std::ranges::all_of(program.nodes[node].operands, [&](ValueId operand) {
        const int maker = graph.producer(operand);
        return maker < 0 || !graph.is_floating(maker) || is_small(graph, maker);
    });
}

} // namespace

void merge_small(Groups &groups) {
    std::vector<bool> is_member(groups.size());
    for (int group = 0; group < groups.size(); ++group)
        is_member[group] = groups.is_alive(group) && groups[group].library.empty() &&
                           std::ranges::all_of(groups[group].nodes, [&](int node) { return is_small(groups.graph(), node); });
    std::vector<std::vector<int>> parts = parts_of_levels(groups, is_member, most_nodes);
    // A matmul alone becomes small, too, because other classes pack its operands. Of the other classes, the result would be the same.
    std::erase_if(parts, [&](const std::vector<int> &part) { return part.size() == 1 && groups[part[0]].kind != KernelKind::contract; });
    groups.merge_all(parts);
    for (const std::vector<int> &part : parts) groups.set_kind(part[0], KernelKind::small);
}

} // namespace scalide
