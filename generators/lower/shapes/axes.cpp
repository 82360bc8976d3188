#include "lower/shapes/axes.h"
#include "lower/shapes/axis_attributes.h"
#include "lower/shapes/axis_links.h"
#include <numeric>

namespace scalide {
namespace {

/// Disjoint classes of elements (union-find). Each class may have a mark.
class Classes {
public:
    explicit Classes(size_t size) : parent_(size), marked_(size, false) { std::iota(parent_.begin(), parent_.end(), 0); }

    int find(int i) {
        while (parent_[i] != i) {
            i = parent_[i] = parent_[parent_[i]];
        }
        return i;
    }
    void join(int a, int b) {
        a = find(a), b = find(b);
        parent_[a] = b;
        marked_[b] = marked_[b] || marked_[a];
    }
    void mark(int i) { marked_[find(i)] = true; }
    bool is_marked(int i) { return marked_[find(i)]; }

private:
    std::vector<int> parent_;
    std::vector<bool> marked_;
};

/// Consecutive old axes that become one new axis.
using Group = std::vector<int>;

/// Finds the groups of all values. First it finds the axes of extent 1 that are needed (`kept_`). Then it finds the boundaries between kept
/// axes that a node needs (`cut_`); a boundary has the number of the axis before it.
class AxisMerger {
public:
    explicit AxisMerger(const Program &program)
        : program_(program), first_(number_axes(program)), kept_(first_.back()), cut_(first_.back()) {
        const std::vector<AxisLink> links = axis_links(program);
        for (const AxisLink &link : links) {
            keep_axes(link, 0);
            keep_axes(link, 1);
        }
        for (const AxisLink &link : links) {
            if (link.is_reshape) {
                join_products(link);
            } else {
                cut_boundaries(link, 0);
                cut_boundaries(link, 1);
            }
        }
    }

    std::vector<Group> groups(ValueId value) {
        std::vector<Group> result;
        for (int axis : kept_axes(value)) {
            if (result.empty() || cut_.is_marked(number(value, result.back().back()))) {
                result.push_back({});
            }
            result.back().push_back(axis);
        }
        return result;
    }

private:
    static std::vector<int> number_axes(const Program &program) {
        std::vector<int> first = {0};
        for (const Value &value : program.values) {
            first.push_back(first.back() + value.type.rank());
        }
        return first;
    }

    int number(ValueId value, int axis) const { return first_[value] + axis; }

    std::vector<int> kept_axes(ValueId value) {
        std::vector<int> axes;
        const Extents &shape = program_.type(value).shape;
        for (int axis = 0; axis < int(shape.size()); axis++) {
            if (!(shape[axis] == Extent(1)) || kept_.is_marked(number(value, axis))) {
                axes.push_back(axis);
            }
        }
        return axes;
    }

    void keep_axes(const AxisLink &link, int s) {
        const AxisLink::Side &side = link.sides[s], &other = link.sides[1 - s];
        for (int axis = 0; axis < int(side.axes.size()); axis++) {
            if (side.axes[axis] == AxisLink::fixed || side.axes[axis] == AxisLink::reduced) {
                kept_.mark(number(side.value, axis));
            } else if (side.axes[axis] >= 0) {
                kept_.join(number(side.value, axis), number(other.value, side.axes[axis]));
            }
        }
    }

    /// Returns the position of `axis` among the kept axes of `value`.
    int position(ValueId value, int axis) {
        int count = 0;
        for (int kept : kept_axes(value)) {
            count += kept < axis;
        }
        return count;
    }

    void cut_boundaries(const AxisLink &link, int s) {
        const AxisLink::Side &side = link.sides[s], &other = link.sides[1 - s];
        const std::vector<int> kept = side.value < 0 ? std::vector<int>() : kept_axes(side.value);
        for (size_t i = 0; i + 1 < kept.size(); i++) {
            int here = number(side.value, kept[i]), left = side.axes[kept[i]], right = side.axes[kept[i + 1]];
            bool linked = left >= 0 && right >= 0;
            if (linked && position(other.value, right) == position(other.value, left) + 1) {
                cut_.join(here, number(other.value, left));
            } else if (left != right || left == AxisLink::fixed) {
                cut_.mark(here);
            }
        }
    }

    /// A reshape keeps two axes apart only if its other side has a boundary at the same position and keeps it.
    void join_products(const AxisLink &link) {
        std::map<Extent, int> boundaries;
        for (const AxisLink::Side &side : link.sides) {
            const std::vector<Extent> products = suffix_products(program_.type(side.value).shape);
            const std::vector<int> kept = kept_axes(side.value);
            for (size_t i = 0; i + 1 < kept.size(); i++) {
                int here = number(side.value, kept[i]);
                auto [found, fresh] = boundaries.insert({products[kept[i + 1]], here});
                if (!fresh) {
                    cut_.join(here, found->second);
                }
            }
        }
    }

    const Program &program_;
    std::vector<int> first_; ///< by value: number of its first axis
    Classes kept_, cut_;
};

Extents merged_shape(const Extents &shape, const std::vector<Group> &groups) {
    Extents merged;
    for (const Group &group : groups) {
        Extent extent = 1;
        for (int axis : group) {
            extent = extent * shape[axis];
        }
        merged.push_back(extent);
    }
    return merged;
}

/// Rewrites the attributes of one node that contain axes.
class NodeRewriter {
public:
    NodeRewriter(const std::vector<std::vector<Group>> &groups, Node &node) : groups_(groups), node_(node) {}

    void rewrite() {
        if (keeps_axes_apart(node_)) {
            return;
        }
        for (const auto &[name, value] : Attributes(node_.attributes))
            if (const AxisAttribute *row = find_axis_attribute(name)) node_.attributes[name] = rewritten(*row, value);
    }

private:
    const std::vector<Group> &operand_groups() const { return groups_[node_.operands.empty() ? node_.results[0] : node_.operands[0]]; }
    const std::vector<Group> &result_groups() const { return groups_[node_.results[0]]; }

    Attribute rewritten(const AxisAttribute &row, const Attribute &value) const {
        using Kind = AxisAttribute::Kind;
        switch (row.kind) {
        case Kind::axis: return find_group(operand_groups(), value.integer.value());
        case Kind::axes: return to_attribute(find_groups(operand_groups(), to_integers(value)));
        case Kind::permutation: return to_attribute(counterparts(result_groups(), operand_groups(), to_integers(value)));
        case Kind::embedding: return to_attribute(counterparts(operand_groups(), result_groups(), to_integers(value)));
        case Kind::entries: break;
        }
        return value.list.empty() ? value : entries(row, value);
    }

    static int64_t find_group(const std::vector<Group> &groups, int64_t axis) {
        for (size_t g = 0; g < groups.size(); g++) {
            if (groups[g].front() <= axis && axis <= groups[g].back()) {
                return int64_t(g);
            }
        }
        throw InternalError("internal error: an axis that a node needs was merged away");
    }

    /// Returns the new axes of these old axes, in order and without duplicates. Dropped axes are left out.
    static std::vector<int64_t> find_groups(const std::vector<Group> &groups, const std::vector<int64_t> &axes) {
        std::vector<int64_t> found;
        for (size_t g = 0; g < groups.size(); g++) {
            for (int64_t axis : axes) {
                if (groups[g].front() == axis) {
                    found.push_back(int64_t(g));
                }
            }
        }
        return found;
    }

    /// Returns for each group the group in `others` to which `axes` maps its first axis.
    static std::vector<int64_t> counterparts(const std::vector<Group> &groups, const std::vector<Group> &others,
                                             const std::vector<int64_t> &axes) {
        std::vector<int64_t> found;
        for (const Group &group : groups) {
            found.push_back(find_group(others, axes[group.front()]));
        }
        return found;
    }

    /// Merges entries. If a group has several axes, their entries are neutral: extents are multiplied, other entries are equal.
    Attribute entries(const AxisAttribute &row, const Attribute &value) const {
        if (row.neutral == AxisAttribute::Neutral::extent) {
            return to_attribute(merged_shape(to_extents(value), operand_groups()));
        }
        std::vector<Attribute> fresh;
        for (const Group &group : operand_groups()) {
            fresh.push_back(value.list[group.front()]);
        }
        return fresh;
    }

    const std::vector<std::vector<Group>> &groups_;
    Node &node_;
};

} // namespace

Program merge_axes(const Program &program) {
    AxisMerger merger(program);
    std::vector<std::vector<Group>> groups;
    Program merged = program;
    for (ValueId value = 0; value < ValueId(program.values.size()); value++) {
        groups.push_back(merger.groups(value));
        merged.values[value].type.shape = merged_shape(program.type(value).shape, groups.back());
    }
    for (Node &node : merged.nodes) {
        NodeRewriter(groups, node).rewrite();
        if (node.attributes.contains("shape")) {
            node.attributes["shape"] = to_attribute(merged.type(node.results[0]).shape);
        }
    }
    return merged;
}

} // namespace scalide
