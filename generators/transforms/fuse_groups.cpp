#include "transforms/fuse_groups.h"
#include "expr/base_operators.h"
#include "ir/shape.h"
#include <algorithm>

namespace scalide {

namespace {

constexpr std::string_view kind_names[] = {"scalar", "map",     "row",  "column", "full", "contract",
                                           "scan",   "scatter", "sort", "window", "tiled"};

/// Row, column or full, by which of the axes that are not 1 a reduction folds.
Group reduction_group(const Program &program, const Node &node) {
    const Extents &shape = program.type(node.operands[0]).shape;
    const Attribute &axes = node.attributes.contains("axes") ? node.attributes.at("axes") : node.attributes.at("axis");
    const std::vector<int64_t> folded = axes.kind == Attribute::Kind::list ? to_integers(axes) : std::vector{axes.integer.value()};
    Group group{KernelKind::full, {}, without_ones(shape), without_ones(program.type(node.results[0]).shape), false};
    if (program.type(node.results[0]).is_scalar()) return group;
    std::vector<bool> is_folded;
    for (int axis = 0; axis < static_cast<int>(shape.size()); ++axis)
        if (shape[axis] != Extent(1)) is_folded.push_back(std::ranges::find(folded, axis) != folded.end());
    if (std::ranges::is_sorted(is_folded))
        group.kind = KernelKind::row;
    else
        group.kind = KernelKind::column;
    internal_check(std::ranges::is_sorted(is_folded) || std::ranges::is_sorted(is_folded, std::greater<>()),
                   "fuse: " + node.op + " folds axes in the middle");
    return group;
}

/// The kind of kernel that is made around one node of this shape; map where the shape says nothing.
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
    before_.resize(groups_.size());
    after_.resize(groups_.size());
    for (int group = 0; group < size(); ++group)
        for (const Read &read : graph.reads(groups_[group].nodes[0]))
            if (const int producer = producer_group(read.value); producer >= 0) {
                before_[group].insert(producer);
                after_[producer].insert(group);
            }
    paths_ = Reachability(after_);
}

int Groups::producer_group(ValueId value) const {
    const int node = graph_.producer(value);
    return node < 0 ? -1 : group_of_[node];
}

void Groups::add_edge(int before, int after) {
    before_[after].insert(before);
    after_[before].insert(after);
    paths_.connect(before, after);
}

void Groups::add_order(int first_node, int second_node) {
    if (group_of_[first_node] != group_of_[second_node]) add_edge(group_of_[first_node], group_of_[second_node]);
}

bool Groups::has_path_around(int from, int to) const {
    return std::ranges::any_of(after_[from], [&](int next) { return next != to && has_path(next, to); });
}

std::vector<Read> Groups::reads_between(int producer, int consumer) const {
    std::vector<Read> between;
    for (int node : groups_[consumer].nodes)
        for (const Read &read : graph_.reads(node))
            if (producer_group(read.value) == producer) between.push_back(read);
    return between;
}

std::vector<ValueId> Groups::outputs(int group) const {
    std::vector<ValueId> values;
    for (int node : groups_[group].nodes) {
        const ValueId value = program().nodes[node].results[0];
        const auto is_elsewhere = [&](const Read &read) { return group_of_[read.reader] != group; };
        if (graph_.is_result(value) || std::ranges::any_of(graph_.readers(value), is_elsewhere)) values.push_back(value);
    }
    return values;
}

std::vector<ValueId> Groups::inputs(int group) const {
    std::vector<ValueId> values;
    for (int node : groups_[group].nodes)
        for (const Read &read : graph_.reads(node))
            if (producer_group(read.value) != group && std::ranges::find(values, read.value) == values.end()) values.push_back(read.value);
    return values;
}

bool Groups::is_read_only_by(int group, int readers_group) const {
    return std::ranges::all_of(groups_[group].nodes, [&](int node) {
        const ValueId value = program().nodes[node].results[0];
        const auto is_inside = [&](const Read &read) { return group_of_[read.reader] == group || group_of_[read.reader] == readers_group; };
        return !graph_.is_result(value) && std::ranges::all_of(graph_.readers(value), is_inside);
    });
}

void Groups::merge(int first, int second, Group merged) {
    internal_check(!has_path_around(first, second) && !has_path_around(second, first), "fuse: a merge would close a cycle");
    merged.nodes = nodes_of(*this, first, second);
    for (int node : groups_[second].nodes) group_of_[node] = first;
    groups_[first] = std::move(merged);
    groups_[second] = {};
    for (int group : before_[second]) {
        after_[group].erase(second);
        if (group != first) add_edge(group, first);
    }
    for (int group : after_[second]) {
        before_[group].erase(second);
        if (group != first) add_edge(first, group);
    }
    before_[second].clear();
    after_[second].clear();
    paths_.connect(first, second); // in both directions: one vertex from now on
    paths_.connect(second, first);
}

std::vector<int> nodes_of(const Groups &groups, int first, int second) {
    std::vector<int> nodes;
    std::ranges::merge(groups[first].nodes, groups[second].nodes, std::back_inserter(nodes));
    return nodes;
}

} // namespace scalide
