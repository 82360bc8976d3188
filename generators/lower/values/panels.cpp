#include "lower/values/panels.h"
#include <algorithm>

namespace scalide {
using Halide::Expr;

namespace {

/// Returns the argument from which movement and conversions compute a value.
ValueId source_of(const Values &values, ValueId value) {
    while (const Node *node = values.producer(value)) value = node->operands[0];
    return value;
}

/// Returns an index of an array whose axes were merged, or dropped if their extent is 1, from an index of all axes.
Index merge_index(const Values &values, const Extents &shape, const Extents &merged, const Index &index) {
    Index result;
    size_t axis = 0;
    for (const Extent &extent : merged) {
        Extent product = 1;
        Expr position = 0;
        for (; product != extent; axis++) {
            internal_check(axis < shape.size(), "panels: an axis was merged with another one");
            if (shape[axis] == Extent(1)) continue;
            position = position * values.extent(shape[axis]) + index[axis];
            product = product * shape[axis];
        }
        result.push_back(Halide::Internal::simplify(position));
    }
    return result;
}

} // namespace

std::optional<Extents> panels_of(const Program &kernel) {
    const auto found = kernel.attributes.find(panels_attribute);
    if (found == kernel.attributes.end()) return {};
    return to_extents(found->second);
}

bool holds_panels(const Program &kernel, int argument) {
    const auto product = std::ranges::find(kernel.nodes, "dot_general", &Node::op);
    if (!panels_of(kernel) || product == kernel.nodes.end()) return false;
    const std::vector<int> makers = producers(kernel);
    ValueId value = product->operands[1];
    while (makers[value] >= 0) value = kernel.nodes[makers[value]].operands[0];
    return kernel.arguments[argument].value == value;
}

Expr element_of_panels(Values &values, ValueId operand, const Index &index) {
    const ValueId panels = source_of(values, operand);
    const Extents &merged = values.program().type(panels).shape;
    return values.at(panels, merge_index(values, *panels_of(values.program()), merged, index));
}

} // namespace scalide
