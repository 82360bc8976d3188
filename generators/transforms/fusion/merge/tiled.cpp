#include "transforms/fusion/merge/tiled.h"
#include "expr/base_operators.h"
#include "transforms/fusion/groups/overwrites.h"
#include <algorithm>
#include <set>

namespace scalide {

namespace {

/// Limits of a kernel: its results share the shared memory, and all its stages are compiled together.
constexpr size_t most_results = 8, most_tiled_nodes = 60;
/// Tiles cover two axes, and a grid of blocks has three.
constexpr size_t most_axes = 3;

class TiledMerger {
public:
    explicit TiledMerger(Groups &groups) : groups_(groups) {
        for (const Overwrite &overwrite : graph().overwrites()) overwriting_.insert(graph().producer(overwrite.value));
    }

    void merge() {
        for (int group = 0; group < groups_.size(); ++group)
            if (is_map(group)) turn(group);
        for (int group = 0; group < groups_.size(); ++group)
            if (groups_.is_alive(group) && groups_[group].kind == KernelKind::full) reduce_beside(group);
    }

private:
    const FuseGraph &graph() const { return groups_.graph(); }
    const Program &program() const { return groups_.program(); }
    const Extents &shape_of(ValueId value) const { return program().type(value).shape; }

    bool is_map(int group) const { return groups_.is_alive(group) && groups_[group].kind == KernelKind::map; }
    bool is_map_or_tiled(int group) const { return is_map(group) || (groups_.is_alive(group) && groups_[group].kind == KernelKind::tiled); }

    /// Returns the operand of a transpose that moves the innermost axis and whose result is stored. A copy of such a transpose counts too
    /// (write_calls.h). Returns -1 for all other nodes.
    ValueId turned_by(int index) const {
        const Node &node = program().nodes[index];
        if (is_copy(program(), node)) {
            const int maker = graph().producer(node.operands[0]);
            return maker < 0 || program().nodes[maker].op != "transpose" ? -1 : turned_by(maker);
        }
        if (node.op != "transpose") return -1;
        const std::vector<int64_t> permutation = to_integers(node.attributes.at("permutation"));
        return permutation.back() + 1 == std::ssize(permutation) ? -1 : node.operands[0];
    }

    bool is_overwriting(int node) const { return overwriting_.contains(node); }

    /// True if the node is elementwise on `shape` and reads values of these nodes at the same index only.
    bool walks(int index, const std::vector<int> &nodes, const Extents &shape) const {
        const Node &node = program().nodes[index];
        const bool is_elementwise = find_base_operator(node.op)->shape == Shape::elementwise || is_copy(program(), node);
        return is_elementwise && shape_of(node.results[0]) == shape && !is_overwriting(index) &&
               std::ranges::all_of(graph().reads(index), [&](const Read &read) {
                   return !std::ranges::binary_search(nodes, graph().producer(read.value)) || read.access == Access::same;
               });
    }

    /// True if the nodes are elementwise on `shape` or transposed copies of values of this shape.
    bool is_tile_of(const std::vector<int> &nodes, const Extents &shape) const {
        const bool has_tiles = !shape.empty() && shape.size() <= most_axes && std::ranges::find(shape, Extent(1)) == shape.end();
        return has_tiles && nodes.size() <= most_tiled_nodes && std::ranges::all_of(nodes, [&](int node) {
                   const ValueId turned = turned_by(node);
                   return turned >= 0 ? shape_of(turned) == shape && !is_overwriting(node) : walks(node, nodes, shape);
               });
    }

    bool may_merge(int first, int second) const {
        return !groups_.has_path_around(first, second) && !groups_.has_path_around(second, first) &&
               groups_.outputs(first).size() + groups_.outputs(second).size() <= most_results;
    }

    void turn(int group) {
        const std::vector<int> nodes = groups_[group].nodes;
        const auto copy = std::ranges::find_if(nodes, [&](int node) { return turned_by(node) >= 0; });
        if (copy == nodes.end() || !is_tile_of(nodes, shape_of(turned_by(*copy)))) return;
        const ValueId turned = turned_by(*copy);
        groups_.set_kind(group, KernelKind::tiled);
        const int maker = groups_.producer_group(turned);
        if (maker >= 0 && maker != group && is_map_or_tiled(maker) && is_tile_of(groups_[maker].nodes, shape_of(turned)))
            take(maker, group);
    }

    void take(int group, int other) {
        if (!may_merge(group, other)) return;
        Group merged = groups_[group];
        merged.kind = KernelKind::tiled;
        groups_.merge(group, other, merged);
    }

    /// Returns the operand shape that all reductions of a group share. Empty if the shapes differ, or if a reduction needs an order.
    Extents reduced_shape(int group) const {
        Extents shape;
        for (int node : groups_[group].nodes) {
            const Node &n = program().nodes[node];
            if (find_base_operator(n.op)->shape != Shape::reduce) continue;
            const Extents &walked = shape_of(n.operands[0]);
            if (!folds_in_any_order(base_operator(n.op)) || (!shape.empty() && walked != shape)) return {};
            shape = walked;
        }
        return shape;
    }

    void reduce_beside(int full) {
        const Extents shape = reduced_shape(full);
        const std::vector<int> &nodes = groups_[full].nodes;
        const auto fits = [&](int node) {
            const bool reduces = find_base_operator(program().nodes[node].op)->shape == Shape::reduce;
            return reduces ? !is_overwriting(node) : walks(node, nodes, shape);
        };
        if (shape.empty() || !std::ranges::all_of(nodes, fits)) return;
        for (int group : groups_.neighbours(full)) {
            if (!is_map_or_tiled(group) || !is_tile_of(groups_[group].nodes, shape) || !reads_the_same(group, full, shape)) continue;
            if (!may_merge(group, full)) continue;
            return take(group, full);
        }
    }

    /// True if `full` reads, element by element, values that `group` computes. Otherwise the groups must be independent and read the same
    /// array.
    bool reads_the_same(int group, int full, const Extents &shape) const {
        const std::vector<Read> between = groups_.reads_between(group, full);
        if (!between.empty()) return std::ranges::all_of(between, [](const Read &read) { return read.access == Access::same; });
        if (groups_.has_path(group, full) || groups_.has_path(full, group)) return false;
        const std::vector<ValueId> inputs = groups_.inputs(group);
        return std::ranges::any_of(groups_.inputs(full), [&](ValueId value) {
            return shape_of(value) == shape && std::ranges::find(inputs, value) != inputs.end();
        });
    }

    Groups &groups_;
    std::set<int> overwriting_; ///< nodes whose value overwrites an argument
};

} // namespace

void merge_tiled(Groups &groups, const TargetFacts &facts) {
    if (!facts.products.empty()) TiledMerger(groups).merge();
}

} // namespace scalide
