#include "transforms/fusion/groups/groups.h"
#include "expr/base_operators.h"
#include "ir/reduction_axes.h"
#include "ir/shape.h"
#include <algorithm>
#include <numeric>

namespace scalide {

namespace {

constexpr std::string_view kind_names[] = {"scalar", "map",     "row",  "column", "full",  "contract",
                                           "scan",   "scatter", "sort", "window", "tiled", "small"};

/// Chooses row, column or full by the axes that the reduction reduces. Axes of extent 1 do not count.
Group reduction_group(const Program &program, const Node &node) {
    Group group{
        KernelKind::full, {}, without_ones(program.type(node.operands[0]).shape), without_ones(program.type(node.results[0]).shape), false};
    if (program.type(node.results[0]).is_scalar()) return group;
    group.kind = reduces_trailing(program, node) ? KernelKind::row : KernelKind::column;
    internal_check(group.kind == KernelKind::row || reduces_leading(program, node), "fuse: " + node.op + " reduces axes in the middle");
    return group;
}

/// The kind of kernel that a node with this iteration pattern needs; map if the pattern needs none.
KernelKind kind_around(Shape shape) {
    static const std::map<Shape, KernelKind> kinds{{Shape::contract, KernelKind::contract},
                                                   {Shape::scan, KernelKind::scan},
                                                   {Shape::scatter, KernelKind::scatter},
                                                   {Shape::sort, KernelKind::sort},
                                                   {Shape::window, KernelKind::window}};
    const auto found = kinds.find(shape);
    return found == kinds.end() ? KernelKind::map : found->second;
}

} // namespace

std::string_view to_string(KernelKind kind) { return kind_names[static_cast<size_t>(kind)]; }

Group group_of_node(const Program &program, int index) {
    const Node &node = program.nodes[index];
    const Type &type = program.type(node.results[0]);
    const Shape shape = find_base_operator(node.op)->shape;
    Group group;
    group.kind = kind_around(shape);
    if (shape == Shape::reduce)
        group = reduction_group(program, node);
    else
        group.iteration = without_ones(type.shape);
    const auto is_scalar = [&](ValueId value) { return program.type(value).is_scalar(); };
    if (group.kind == KernelKind::map && type.is_scalar() && std::ranges::all_of(node.operands, is_scalar)) group.kind = KernelKind::scalar;
    group.nodes = {index};
    return group;
}

Groups::Groups(const FuseGraph &graph) : graph_(graph), group_of_(program().nodes.size(), -1), paths_({}) {
    for (int node = 0; node < static_cast<int>(program().nodes.size()); ++node) {
        if (graph.is_floating(node)) continue;
        group_of_[node] = size();
        groups_.push_back(group_of_node(program(), node));
    }
    inputs_.resize(groups_.size());
    outputs_.resize(groups_.size());
    stages_.resize(groups_.size());
    std::vector<std::set<int>> after(groups_.size());
    for (int group = 0; group < size(); ++group) {
        find_values(group);
        for (const Read &read : graph.reads(groups_[group].nodes[0]))
            if (const int producer = producer_group(read.value); producer >= 0) after[producer].insert(group);
    }
    paths_ = Reachability(std::move(after));
}

void Groups::find_values(int group) {
    inputs_[group].clear();
    outputs_[group].clear();
    stages_[group] = 0;
    std::set<ValueId> known;
    const auto is_elsewhere = [&](const Read &read) { return group_of_[read.reader] != group; };
    for (int node : groups_[group].nodes) {
        for (const Read &read : graph_.reads(node))
            if (producer_group(read.value) != group && known.insert(read.value).second) inputs_[group].push_back(read.value);
        const ValueId value = program().nodes[node].results[0];
        if (graph_.is_result(value) || std::ranges::any_of(graph_.readers(value), is_elsewhere)) outputs_[group].push_back(value);
        const Shape shape = graph_.shape(node);
        stages_[group] += shape == Shape::reduce || shape == Shape::contract || shape == Shape::window;
    }
    stages_[group] += int(outputs_[group].size());
}

int Groups::producer_group(ValueId value) const {
    const int node = graph_.producer(value);
    return node < 0 ? -1 : group_of_[node];
}

std::vector<int> Groups::in_order() const {
    std::vector<int> order;
    for (int group = 0; group < size(); ++group)
        if (is_alive(group)) order.push_back(group);
    std::ranges::sort(order, {}, [this](int group) { return paths_.place(group); });
    return order;
}

std::set<int> Groups::neighbours(int group) const {
    std::set<int> found;
    for (ValueId value : inputs_[group]) {
        if (program().type(value).is_scalar()) continue;
        if (const int producer = producer_group(value); producer >= 0) found.insert(producer);
        for (const Read &read : graph_.readers(value)) found.insert(group_of_[read.reader]);
    }
    found.erase(group);
    return found;
}

void Groups::add_order(int first_node, int second_node) {
    const int first = group_of_[first_node], second = group_of_[second_node];
    internal_check(first == second || paths_.connect(first, second), "fuse: an order would close a cycle");
}

std::vector<Read> Groups::reads_between(int producer, int consumer) const {
    std::vector<Read> between;
    for (int node : groups_[consumer].nodes)
        for (const Read &read : graph_.reads(node))
            if (producer_group(read.value) == producer) between.push_back(read);
    return between;
}

bool Groups::is_read_only_by(int group, int readers_group) const {
    return std::ranges::all_of(groups_[group].nodes, [&](int node) {
        const ValueId value = program().nodes[node].results[0];
        const auto is_inside = [&](const Read &read) { return group_of_[read.reader] == group || group_of_[read.reader] == readers_group; };
        return !graph_.is_result(value) && std::ranges::all_of(graph_.readers(value), is_inside);
    });
}

void Groups::merge(int first, int second, Group merged) {
    internal_check(paths_.merge(first, second), "fuse: a merge would close a cycle");
    merged.nodes = nodes_of(*this, first, second);
    for (int node : groups_[second].nodes) group_of_[node] = first;
    groups_[first] = std::move(merged);
    groups_[second] = {};
    find_values(first);
    find_values(second);
}

void Groups::merge_all(const std::vector<std::vector<int>> &parts) {
    std::vector<int> target(groups_.size());
    std::iota(target.begin(), target.end(), 0);
    for (const std::vector<int> &part : parts) {
        std::vector<int> nodes;
        for (int group : part) {
            target[group] = part[0];
            nodes.insert(nodes.end(), groups_[group].nodes.begin(), groups_[group].nodes.end());
            if (group != part[0]) groups_[group] = {};
        }
        std::ranges::sort(nodes);
        for (int node : nodes) group_of_[node] = part[0];
        groups_[part[0]].nodes = std::move(nodes);
    }
    paths_.merge_all(target);
    for (const std::vector<int> &part : parts) std::ranges::for_each(part, [this](int group) { find_values(group); });
}

std::vector<int> nodes_of(const Groups &groups, int first, int second) {
    std::vector<int> nodes;
    std::ranges::merge(groups[first].nodes, groups[second].nodes, std::back_inserter(nodes));
    return nodes;
}

} // namespace scalide
