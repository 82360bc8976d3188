#include "kinds/kernel_view.h"
#include "ir/shape.h"
#include <algorithm>

namespace scalide {

KernelView::KernelView(const Program &kernel) : program_(kernel), after_(kernel.values.size()) {
    for (const Value &value : kernel.values) shapes_.push_back(without_ones(value.type.shape));
    for (const Node &node : kernel.nodes) after_[node.results[0]] = is_walk_of_its_own(node) || reads_after(node);
}

bool KernelView::is_walk_of_its_own(const Node &node) {
    const Shape shape = walk(node);
    return shape != Shape::elementwise && shape != Shape::movement && shape != Shape::source;
}

bool KernelView::reads_after(const Node &node) const {
    return std::ranges::any_of(node.operands, [&](ValueId operand) { return is_after(operand); });
}

bool KernelView::reads_after_in_place(const Node &node) const {
    return std::ranges::all_of(node.operands,
                               [&](ValueId operand) { return !is_after(operand) || access_of(program_, node, operand) == Access::same; });
}

bool converts(const BaseOperator &op) { return op.shape == Shape::elementwise && op.evaluate == nullptr; }

std::string say(const KernelView &kernel, const Node &node, const std::string &requirement, const std::string &got) {
    return node.op + "." + kernel.program().value_name(node.results[0]) + ": " + requirement + ", got " + got;
}

std::string say_shape(const Extents &shape) {
    std::string text;
    for (const Extent &extent : shape) text += (text.empty() ? "" : ", ") + to_string(extent);
    return "[" + text + "]";
}

} // namespace scalide
