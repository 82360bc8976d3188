#include "ir/reduction_axes.h"
#include "expr/base_operators.h"
#include <algorithm>
#include <functional>

namespace scalide {

namespace {

/// By axis of the operand, without axes of extent 1: whether the reduction reduces it.
std::vector<bool> reduced(const Program &program, const Node &node) {
    const std::vector<int64_t> axes = reduced_axes(node);
    const Extents &shape = program.type(node.operands[0]).shape;
    std::vector<bool> is_reduced;
    for (int64_t axis = 0; axis < std::ssize(shape); axis++)
        if (shape[axis] != Extent(1)) is_reduced.push_back(std::ranges::find(axes, axis) != axes.end());
    return is_reduced;
}

} // namespace

bool is_reduction(const Node &node) {
    const BaseOperator *op = find_base_operator(node.op);
    return op && op->shape == Shape::reduce;
}

std::vector<int64_t> reduced_axes(const Node &node) {
    const auto axis = node.attributes.find("axis");
    return axis != node.attributes.end() ? std::vector{axis->second.integer.value()} : to_integers(node.attributes.at("axes"));
}

bool reduces_trailing(const Program &program, const Node &node) { return std::ranges::is_sorted(reduced(program, node)); }

bool reduces_leading(const Program &program, const Node &node) { return std::ranges::is_sorted(reduced(program, node), std::greater<>()); }

} // namespace scalide
