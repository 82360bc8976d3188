#include "transforms/constants/panel_movement.h"
#include "ir/rewrite.h"
#include "transforms/analysis/operators.h"
#include <algorithm>

namespace scalide {

namespace {

/// Returns extent / divisor, rounded up; nothing if it is symbolic and no multiple.
std::optional<Extent> divide_up(const Extent &extent, int64_t divisor) {
    if (extent.is_static()) return Extent((extent.value() + divisor - 1) / divisor);
    return extent.divide(divisor);
}

} // namespace

PanelMovement::PanelMovement(Program &program, const PanelLayout &layout, const Type &operand)
    : program_(program), layout_(layout), operand_(operand), order_(layout.axes) {
    order_.push_back(layout.columns);
    for (const int64_t axis : order_) sorted_.push_back(operand.shape[axis]);
    split_ = sorted_;
    const auto steps = divide_up(split_[split_.size() - 2], layout.step * layout.group), panels = divide_up(split_.back(), layout.width);
    is_possible_ = steps && panels;
    if (!is_possible_) return;
    const Extent groups = *steps * layout.step;
    split_.pop_back();
    split_.back() = groups;
    split_.insert(split_.end(), {layout.group, *panels, layout.width});
    padded_ = sorted_;
    padded_.back() = *panels * layout.width;
    padded_[padded_.size() - 2] = groups * layout.group;
    find_panel_order();
}

ValueId PanelMovement::pack(ValueId value) {
    value = pad(transpose(value, order_));
    return convert(transpose(reshape(value, split_), panel_order_), layout_.element);
}

ValueId PanelMovement::unpack(ValueId value) {
    value = transpose(value, inverse(panel_order_));
    value = slice(reshape(value, padded_));
    return convert(transpose(value, inverse(order_)), operand_.dtype);
}

/// The order of the axes of `split_` in the array of panels: outside, panels, inside, columns, group.
void PanelMovement::find_panel_order() {
    const auto rank = int64_t(split_.size());
    for (int64_t axis = 0; axis < rank - 3; axis++) {
        if (axis == int64_t(layout_.outside)) panel_order_.push_back(rank - 2);
        panel_order_.push_back(axis);
    }
    panel_order_.insert(panel_order_.end(), {rank - 1, rank - 3});
}

ValueId PanelMovement::add(const std::string &op, std::vector<ValueId> operands, Attributes attributes, Type type) {
    Node node;
    node.op = op;
    node.operands = std::move(operands);
    node.attributes = std::move(attributes);
    return add_node(program_, std::move(node), {std::move(type)})[0];
}

ValueId PanelMovement::convert(ValueId value, Dtype dtype) {
    const Type &type = program_.type(value);
    return type.dtype == dtype ? value : add("convert_element_type", {value}, convert_attributes(dtype), {dtype, type.shape});
}

ValueId PanelMovement::transpose(ValueId value, const std::vector<int64_t> &order) {
    if (std::ranges::is_sorted(order)) return value;
    const Type &type = program_.type(value);
    Extents shape;
    for (const int64_t axis : order) shape.push_back(type.shape[axis]);
    return add("transpose", {value}, transpose_attributes(order), {type.dtype, std::move(shape)});
}

ValueId PanelMovement::reshape(ValueId value, const Extents &shape) {
    return add("reshape", {value}, reshape_attributes(shape), {program_.type(value).dtype, shape});
}

ValueId PanelMovement::pad(ValueId value) {
    if (sorted_ == padded_) return value;
    const Dtype dtype = program_.type(value).dtype;
    Padding padding{Extents(sorted_.size(), 0), {}, std::vector<int64_t>(sorted_.size(), 0)};
    for (size_t axis = 0; axis < sorted_.size(); axis++) padding.high.push_back(padded_[axis] - sorted_[axis]);
    const ValueId zero = add("constant", {}, constant_attributes(0, dtype), {dtype, {}});
    return add("pad", {value, zero}, pad_attributes(padding), {dtype, padded_});
}

ValueId PanelMovement::slice(ValueId value) {
    if (sorted_ == padded_) return value;
    const SliceBounds bounds{Extents(sorted_.size(), 0), sorted_, std::vector<int64_t>(sorted_.size(), 1)};
    return add("slice", {value}, slice_attributes(bounds), {program_.type(value).dtype, sorted_});
}

} // namespace scalide
