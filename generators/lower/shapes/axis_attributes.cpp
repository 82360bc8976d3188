#include "lower/shapes/axis_attributes.h"
#include "expr/base_operators.h"
#include <algorithm>

namespace scalide {
namespace {

using Kind = AxisAttribute::Kind;
using Neutral = AxisAttribute::Neutral;

constexpr AxisAttribute rows[] = {
    {"axis", Kind::axis},
    {"dimension", Kind::axis},
    {"axes", Kind::axes},
    {"dimensions", Kind::axes},
    {"permutation", Kind::permutation},
    {"dims", Kind::embedding},
    {"start", Kind::entries, Neutral::zero},
    {"limit", Kind::entries, Neutral::extent},
    {"strides", Kind::entries, Neutral::one},
    {"low", Kind::entries, Neutral::zero},
    {"high", Kind::entries, Neutral::zero},
    {"interior", Kind::entries, Neutral::zero},
    {"window", Kind::entries, Neutral::one},
    {"base_dilation", Kind::entries, Neutral::one},
    {"window_dilation", Kind::entries, Neutral::one},
};

Extents neutral_entries(const AxisAttribute &row, const Extents &shape) {
    return row.neutral == Neutral::extent ? shape : Extents(shape.size(), Extent(row.neutral == Neutral::one));
}

std::vector<int64_t> axes_of_entries(const Node &node, const AxisAttribute &row, const Extents &shape) {
    const Extents neutral = neutral_entries(row, shape);
    const std::vector<Extent> entries = axis_values(node, std::string(row.name).c_str(), neutral);
    std::vector<int64_t> axes;
    for (size_t i = 0; i < shape.size(); i++) {
        if (!(entries[i] == neutral[i])) {
            axes.push_back(int64_t(i));
        }
    }
    return axes;
}

std::vector<int64_t> axes_of(const Node &node, const AxisAttribute &row, const Attribute &value, const Extents &shape) {
    switch (row.kind) {
    case Kind::axis: return {value.integer.value()};
    case Kind::axes: return base_operator(node.op).shape == Shape::reduce ? std::vector<int64_t>() : to_integers(value);
    case Kind::entries: return axes_of_entries(node, row, shape);
    case Kind::permutation:
    case Kind::embedding: break;
    }
    return {};
}

} // namespace

const AxisAttribute *find_axis_attribute(std::string_view name) {
    const auto *row = std::ranges::find(rows, name, &AxisAttribute::name);
    return row == std::end(rows) ? nullptr : row;
}

bool keeps_axes_apart(const Node &node) {
    const BaseOperator &op = base_operator(node.op);
    return op.sums_products || op.reads_indices;
}

std::vector<int64_t> touched_axes(const Node &node, const Extents &shape) {
    std::vector<int64_t> touched;
    for (const auto &[name, value] : node.attributes) {
        const AxisAttribute *row = find_axis_attribute(name);
        if (row == nullptr) {
            continue;
        }
        const std::vector<int64_t> axes = axes_of(node, *row, value, shape);
        touched.insert(touched.end(), axes.begin(), axes.end());
    }
    return touched;
}

std::vector<Extent> axis_values(const Node &node, const char *name, const Extents &absent) {
    auto found = node.attributes.find(name);
    return found == node.attributes.end() || found->second.list.empty() ? absent : to_extents(found->second);
}

} // namespace scalide
