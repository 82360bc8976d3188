#include "transforms/loops/split_products.h"
#include "ir/program.h"
#include "transforms/analysis/operators.h"
#include "transforms/analysis/splice.h"
#include "transforms/loops/known_steps.h"
#include <algorithm>

namespace scalide {

namespace {

bool is_wide_product(const Node &node) { return node.op == "dot_general" && node.attributes.at("preferred").word == "f32"; }

ValueId add_slice(Builder &builder, ValueId value, size_t axis, const Extent &start, const Extent &limit) {
    const Extents &shape = builder.type(value).shape;
    SliceBounds bounds{Extents(shape.size(), 0), shape, {}};
    bounds.start[axis] = start;
    bounds.limit[axis] = limit;
    return builder.add_one("slice", {value}, slice_attributes(bounds));
}

/// Returns the axis of the other operand with which axis `axis` of operand `side` is contracted; nothing if it is not.
std::optional<int64_t> contracted_with(const Node &dot, size_t side, int64_t axis) {
    const DotAxes axes = dot_axes(dot);
    const std::vector<int64_t> &own = side == 0 ? axes.lhs_contract : axes.rhs_contract,
                               &other = side == 0 ? axes.rhs_contract : axes.lhs_contract;
    const auto found = std::ranges::find(own, axis);
    return found == own.end() ? std::nullopt : std::optional(other[static_cast<size_t>(found - own.begin())]);
}

/// Parts of a concatenation that are next to each other, and all known before the loop, or all not.
struct Parts {
    std::vector<ValueId> values;
    Extent start, limit;
    bool is_known;
};

std::vector<Parts> parts_of(const Program &body, const Node &join, const KnownSteps &steps) {
    const auto axis = static_cast<size_t>(join.attributes.at("dimension").integer.value());
    std::vector<Parts> parts;
    Extent end = 0;
    for (const ValueId operand : join.operands) {
        const Extent start = end;
        end = end + body.type(operand).shape[axis];
        if (parts.empty() || parts.back().is_known != steps.is_known(operand)) parts.push_back({{}, start, end, steps.is_known(operand)});
        parts.back().values.push_back(operand);
        parts.back().limit = end;
    }
    return parts;
}

/// Adds the sum of the products of the parts with their slices of the other operand.
ValueId add_products(Builder &builder, const Node &dot, size_t side, const Node &join, const std::vector<Parts> &parts) {
    const int64_t axis = join.attributes.at("dimension").integer.value();
    const auto of_other = static_cast<size_t>(*contracted_with(dot, side, axis));
    ValueId sum = -1;
    for (const Parts &part : parts) {
        const ValueId values = part.values.size() == 1 ? part.values[0] : builder.add_one("concatenate", part.values, join.attributes);
        std::vector<ValueId> operands = dot.operands;
        operands[side] = values;
        operands[1 - side] = add_slice(builder, dot.operands[1 - side], of_other, part.start, part.limit);
        const ValueId product = builder.add_one("dot_general", operands, dot.attributes);
        sum = sum < 0 ? product : builder.add_one("add", {sum, product});
    }
    return sum;
}

/// A slice along one axis that takes each element of its range.
struct AxisSlice {
    size_t axis;
    Extent start, limit;
};

std::optional<AxisSlice> slice_of_axis(const Node &slice, const Extents &shape) {
    const SliceBounds bounds = slice_bounds(slice);
    std::optional<AxisSlice> found;
    for (size_t axis = 0; axis < shape.size(); axis++) {
        if (bounds.strides[axis] != 1) return {};
        if (bounds.start[axis] == Extent(0) && bounds.limit[axis] == shape[axis]) continue;
        if (found) return {};
        found = AxisSlice{axis, bounds.start[axis], bounds.limit[axis]};
    }
    return found;
}

/// Returns the axis of operand `side` that is axis `axis` of the product; nothing if that is an axis of the other operand or of both.
std::optional<size_t> free_axis(const Program &body, const Node &dot, size_t side, size_t axis) {
    const DotAxes axes = dot_axes(dot);
    const std::vector<int64_t> of_lhs = other_axes(body.type(dot.operands[0]).rank(), axes.lhs_contract, axes.lhs_batch),
                               of_rhs = other_axes(body.type(dot.operands[1]).rank(), axes.rhs_contract, axes.rhs_batch);
    const size_t first = axes.lhs_batch.size() + (side == 0 ? 0 : of_lhs.size());
    const std::vector<int64_t> &own = side == 0 ? of_lhs : of_rhs;
    if (axis < first || axis >= first + own.size()) return {};
    return static_cast<size_t>(own[axis - first]);
}

/// The slices that are all readers of a product of static extents, none of which overlap.
class SlicedProduct {
public:
    SlicedProduct(const Program &body, const Node &dot, size_t side) : body_(body), dot_(dot), side_(side) {}

    /// Finds the slices. Returns false if there is another reader, or if slices overlap.
    bool find() {
        const ValueId product = dot_.results[0];
        for (size_t i = 0; i < body_.nodes.size(); i++) {
            const Node &node = body_.nodes[i];
            if (std::ranges::count(node.operands, product) == 0) continue;
            const auto slice = node.op == "slice" ? slice_of_axis(node, body_.type(product).shape) : std::nullopt;
            if (!slice || !slice->start.is_static() || !slice->limit.is_static() || !free_axis(body_, dot_, side_, slice->axis))
                return false;
            slices.emplace_back(i, *slice);
        }
        const bool is_result = std::ranges::count(body_.results, product, &Result::value) > 0;
        return !is_result && slices.size() > 1 && !overlap();
    }

    bool has_late_slice() const {
        const std::vector<int> uses = count_uses(body_);
        return std::ranges::any_of(slices, [&](const auto &slice) {
            const ValueId value = body_.nodes[slice.first].results[0];
            const auto stacks =
                std::ranges::count_if(body_.results, [&](const Result &result) { return result.value == value && result.argument < 0; });
            return stacks > 0 && stacks == uses[value];
        });
    }

    std::vector<std::pair<size_t, AxisSlice>> slices; ///< by number of the node

private:
    bool overlap() const {
        for (const auto &[i, a] : slices)
            for (const auto &[j, b] : slices)
                if (i < j && (a.axis != b.axis || (a.start.value() < b.limit.value() && b.start.value() < a.limit.value()))) return true;
        return false;
    }

    const Program &body_;
    const Node &dot_;
    const size_t side_;
};

} // namespace

bool split_concatenated_products(RegionEdit &edit) {
    const KnownSteps steps(edit);
    Program &body = edit.body();
    const std::vector<int> makers = producers(body);
    for (size_t i = 0; i < body.nodes.size(); i++) {
        const Node dot = body.nodes[i];
        if (!is_wide_product(dot)) continue;
        for (const size_t side : {0, 1}) {
            const ValueId joined = dot.operands[side], other = dot.operands[1 - side];
            if (makers[joined] < 0 || body.nodes[makers[joined]].op != "concatenate" || !steps.is_known(other) || steps.varies(other))
                continue;
            const Node join = body.nodes[makers[joined]];
            if (!contracted_with(dot, side, join.attributes.at("dimension").integer.value())) continue;
            const std::vector<Parts> parts = parts_of(body, join, steps);
            if (parts.size() < 2) continue;
            replace_node(body, edit.builder.rulebook(), i,
                         [&](Builder &builder, const Node &node) { return std::vector{add_products(builder, node, side, join, parts)}; });
            return true;
        }
    }
    return false;
}

bool split_sliced_products(RegionEdit &edit) {
    const KnownSteps steps(edit);
    Program &body = edit.body();
    for (size_t i = 0; i < body.nodes.size(); i++) {
        const Node dot = body.nodes[i];
        if (!is_wide_product(dot) || steps.is_known(dot.results[0])) continue;
        for (const size_t side : {0, 1}) {
            const ValueId weight = dot.operands[side];
            if (!steps.is_known(weight) || steps.varies(weight)) continue;
            SlicedProduct sliced(body, dot, side);
            if (!sliced.find() || !sliced.has_late_slice()) continue;
            std::ranges::sort(sliced.slices, std::greater{}, [](const auto &slice) { return slice.first; });
            for (const auto &[index, slice] : sliced.slices) {
                const size_t axis = *free_axis(body, dot, side, slice.axis);
                replace_node(body, edit.builder.rulebook(), index, [&, slice = slice](Builder &builder, const Node &) {
                    builder.stamp_like(dot);
                    std::vector<ValueId> operands = dot.operands;
                    operands[side] = add_slice(builder, weight, axis, slice.start, slice.limit);
                    return std::vector{builder.add_one("dot_general", operands, dot.attributes)};
                });
            }
            return true;
        }
    }
    return false;
}

} // namespace scalide
