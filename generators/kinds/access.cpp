#include "kinds/access.h"
#include "expr/base_operators.h"
#include "ir/shape.h"
#include <algorithm>

namespace scalide {

namespace {

/// Returns the axes whose extent is not 1.
std::vector<int> real_axes(const Extents &shape) {
    std::vector<int> axes;
    for (int axis = 0; axis < static_cast<int>(shape.size()); ++axis)
        if (shape[axis] != Extent(1)) axes.push_back(axis);
    return axes;
}

Access broadcast_access(const Program &program, const Node &node) {
    const std::vector<int64_t> dimensions = to_integers(node.attributes.at("dims"));
    std::vector<int> from;
    for (int axis : real_axes(program.type(node.operands[0]).shape)) from.push_back(static_cast<int>(dimensions[axis]));
    const std::vector<int> to = real_axes(program.type(node.results[0]).shape);
    if (from == to) return Access::same;
    if (from.empty()) return Access::scalar;
    if (from.size() > to.size()) return Access::moved;
    if (std::equal(from.begin(), from.end(), to.begin())) return Access::rows;
    return std::equal(from.begin(), from.end(), to.end() - static_cast<std::ptrdiff_t>(from.size())) ? Access::columns : Access::moved;
}

Access reshape_access(const Program &program, const Node &node) {
    const Extents from = without_ones(program.type(node.operands[0]).shape);
    return from == without_ones(program.type(node.results[0]).shape) ? Access::same : Access::moved;
}

Access transpose_access(const Program &program, const Node &node) {
    std::vector<int64_t> order;
    for (int64_t axis : to_integers(node.attributes.at("permutation")))
        if (program.type(node.operands[0]).shape[axis] != Extent(1)) order.push_back(axis);
    return std::ranges::is_sorted(order) ? Access::same : Access::moved;
}

struct MovementAccess {
    std::string_view op;
    Access (*access)(const Program &, const Node &);
};

/// Movement operators that often move nothing. All others always move.
constexpr MovementAccess movement_accesses[] = {
    {"broadcast_in_dim", broadcast_access},
    {"reshape", reshape_access},
    {"transpose", transpose_access},
};

} // namespace

Access access_of(const Program &program, const Node &node) {
    if (find_base_operator(node.op)->shape != Shape::movement) return Access::same;
    const auto *row = std::ranges::find(movement_accesses, node.op, &MovementAccess::op);
    return row == std::end(movement_accesses) ? Access::moved : row->access(program, node);
}

Access access_of(const Program &program, const Node &node, ValueId operand) {
    const Access access = access_of(program, node);
    const bool is_for_all = program.type(operand).is_scalar() && !program.type(node.results[0]).is_scalar();
    return access == Access::same && is_for_all ? Access::scalar : access;
}

Access compose(Access inner, Access outer) {
    if (inner == Access::same) return outer;
    if (outer == Access::same || inner == outer) return inner;
    return inner == Access::scalar ? Access::scalar : Access::moved;
}

} // namespace scalide
