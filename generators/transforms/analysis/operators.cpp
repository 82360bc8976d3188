#include "transforms/analysis/operators.h"
#include "expr/base_operators.h"
#include "ir/evaluation.h"
#include <algorithm>
#include <cmath>
#include <numeric>

namespace scalide {

namespace {

Attribute word(Dtype dtype) { return std::string(to_string(dtype)); }

std::vector<int64_t> list(const Node &node, const std::string &name) { return to_integers(node.attributes.at(name)); }

/// A list with one entry for each axis. An empty list means `fallback` for every axis.
std::vector<int64_t> list_by_axis(const Node &node, const std::string &name, size_t rank, int64_t fallback) {
    const auto found = node.attributes.find(name);
    const bool is_given = found != node.attributes.end() && !found->second.list.empty();
    return is_given ? to_integers(found->second) : std::vector<int64_t>(rank, fallback);
}

Attribute pairs(const std::vector<int64_t> &lhs, const std::vector<int64_t> &rhs) {
    return std::vector<Attribute>{to_attribute(lhs), to_attribute(rhs)};
}

std::vector<int64_t> side(const Node &dot, const std::string &name, size_t index) {
    const auto found = dot.attributes.find(name);
    const bool is_given = found != dot.attributes.end() && !found->second.list.empty();
    return is_given ? to_integers(found->second.list[index]) : std::vector<int64_t>{};
}

} // namespace

Attributes constant_attributes(double value, Dtype dtype) { return {{"value", constant_number(dtype, value)}, {"dtype", word(dtype)}}; }

Attributes broadcast_attributes(const Extents &shape, const std::vector<int64_t> &axes) {
    return {{"shape", to_attribute(shape)}, {"dims", to_attribute(axes)}};
}

Attributes reshape_attributes(const Extents &shape) { return {{"shape", to_attribute(shape)}}; }

Attributes transpose_attributes(const std::vector<int64_t> &permutation) { return {{"permutation", to_attribute(permutation)}}; }

Attributes convert_attributes(Dtype dtype) { return {{"dtype", word(dtype)}}; }

Attributes reduce_attributes(const std::vector<int64_t> &axes) { return {{"axes", to_attribute(axes)}}; }

Attributes slice_attributes(const SliceBounds &bounds) {
    return {{"start", to_attribute(bounds.start)}, {"limit", to_attribute(bounds.limit)}, {"strides", to_attribute(bounds.strides)}};
}

Attributes pad_attributes(const Padding &padding) {
    return {{"low", to_attribute(padding.low)}, {"high", to_attribute(padding.high)}, {"interior", to_attribute(padding.interior)}};
}

DotAxes dot_axes(const Node &dot) {
    return {side(dot, "contract", 0), side(dot, "contract", 1), side(dot, "batch", 0), side(dot, "batch", 1)};
}

Attributes dot_attributes(const DotAxes &axes, Dtype preferred) {
    return {{"contract", pairs(axes.lhs_contract, axes.rhs_contract)},
            {"batch", pairs(axes.lhs_batch, axes.rhs_batch)},
            {"preferred", word(preferred)}};
}

std::vector<int64_t> broadcast_axes(const Node &node) { return list(node, "dims"); }
std::vector<int64_t> permutation(const Node &node) { return list(node, "permutation"); }
std::vector<int64_t> reversed_axes(const Node &node) { return list(node, "dimensions"); }

SliceBounds slice_bounds(const Node &node) {
    const Extents start = to_extents(node.attributes.at("start"));
    return {start, to_extents(node.attributes.at("limit")), list_by_axis(node, "strides", start.size(), 1)};
}

Padding padding(const Node &node) {
    const Extents low = to_extents(node.attributes.at("low"));
    return {low, to_extents(node.attributes.at("high")), list_by_axis(node, "interior", low.size(), 0)};
}

std::vector<int64_t> count_up(int64_t count) {
    std::vector<int64_t> numbers(count);
    std::iota(numbers.begin(), numbers.end(), 0);
    return numbers;
}

std::vector<int64_t> other_axes(int64_t rank, const std::vector<int64_t> &axes, const std::vector<int64_t> &more) {
    std::vector<int64_t> rest;
    for (const int64_t axis : count_up(rank)) {
        if (std::ranges::find(axes, axis) == axes.end() && std::ranges::find(more, axis) == more.end()) rest.push_back(axis);
    }
    return rest;
}

std::vector<int64_t> inverse(const std::vector<int64_t> &order) {
    std::vector<int64_t> result(order.size());
    for (size_t i = 0; i < order.size(); i++) result[order[i]] = static_cast<int64_t>(i);
    return result;
}

bool moves_one_array(const Node &node) {
    const BaseOperator *base = find_base_operator(node.op);
    return base != nullptr && base->shape == Shape::movement && base->arity == 1;
}

bool only_moves(const Node &node) {
    const BaseOperator *base = find_base_operator(node.op);
    if (base == nullptr || base->shape != Shape::movement || base->joins) return false;
    const auto fill = node.attributes.find("fill_value");
    return fill == node.attributes.end() || to_number(fill->second) == 0 || !std::isfinite(to_number(fill->second));
}

} // namespace scalide
