#include "transforms/fusion/merge/calls.h"
#include "transforms/fusion/groups/overwrites.h"
#include "transforms/library/kernel_call.h"
#include "transforms/library/library_call.h"
#include "transforms/library/operand_scales.h"
#include <algorithm>

namespace scalide {

namespace {

/// True if the nodes of a call can be one group. None may belong to another library's call, and no other group may run between them. If one
/// of them overwrites an argument, the others must not read it.
bool are_one_call(const Groups &groups, int call, const std::vector<int> &nodes) {
    std::set<int> members;
    for (int node : nodes) members.insert(groups.group_of(node));
    const auto is_free = [&](int member) { return member == call || groups[member].library.empty(); };
    const auto leads_back = [&](int next) {
        return !members.contains(next) && std::ranges::any_of(members, [&](int member) { return groups.has_path(next, member); });
    };
    const auto is_left = [&](int member) { return std::ranges::any_of(groups.after(member), leads_back); };
    return std::ranges::all_of(members, is_free) && std::ranges::none_of(members, is_left) && overwrites_safely(groups, nodes);
}

/// True if the nodes that multiply operands by their scales serve this call alone.
bool has_own_operands(const FuseGraph &graph, const MatmulCall &call) {
    return std::ranges::all_of(call.operand_nodes, [&](int mul) {
        const ValueId product = graph.program().nodes[mul].results[0];
        return !graph.is_result(product) && (graph.is_floating(mul) || graph.readers(product).size() == 1);
    });
}

} // namespace

void merge_calls(Groups &groups, const TargetFacts &facts) {
    if (facts.products.empty()) return;
    const Program &program = groups.program();
    const FuseGraph &graph = groups.graph();
    const MatmulCalls calls(program, [&](ValueId value) { return graph.producer(value) < 0 || !graph.is_floating(graph.producer(value)); });
    for (int group = 0; group < groups.size(); ++group) {
        if (!groups.is_alive(group) || groups[group].kind != KernelKind::contract) continue;
        const std::vector<MatmulCall> possible = calls.of(groups[group].nodes[0]);
        const auto anchored = [&](const MatmulCall &call) {
            std::vector<int> nodes = call.nodes;
            nodes.insert(nodes.begin(), call.operand_nodes.begin(), call.operand_nodes.end());
            std::erase_if(nodes, [&](int node) { return graph.is_floating(node); });
            std::ranges::sort(nodes);
            return nodes;
        };
        const auto longest = std::find_if(possible.rbegin(), possible.rend(), [&](const MatmulCall &call) {
            const LibraryProduct *product = find_product(program, call, facts);
            return product && !product->through && has_own_operands(graph, call) && calls.with_packed_scales(call) &&
                   are_one_call(groups, group, anchored(call));
        });
        if (longest == possible.rend()) continue;
        const KernelCall call{calls.with_packed_scales(*longest).value(), scale_layouts(program, longest->form).value()};
        groups.set_library(group, find_product(program, *longest, facts)->library, std::make_shared<KernelCall>(call));
        for (int node : anchored(*longest))
            if (groups.group_of(node) != group) groups.merge(group, groups.group_of(node), Group(groups[group]));
    }
}

} // namespace scalide
