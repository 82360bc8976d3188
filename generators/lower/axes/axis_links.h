#pragma once
#include "ir/program.h"

namespace scalide {

/// How the axes of two values correspond: an operand and a result of a node, or two results that should keep equal shapes.
struct AxisLink {
    static constexpr int free = -1;    ///< no counterpart; may be dropped, may merge with free neighbours (a new axis of a broadcast)
    static constexpr int reduced = -2; ///< must stay, may merge with reduced neighbours
    static constexpr int fixed = -3;   ///< must stay an axis of its own (it is sliced, padded, contracted ...)

    struct Side {
        ValueId value = -1;    ///< -1: nothing on this side
        std::vector<int> axes; ///< by axis of `value`: the same axis on the other side, or free, or fixed
    };
    Side sides[2];
    bool is_reshape = false; ///< axes correspond where the extents behind them have equal products, and are free elsewhere
};

/// The links of all nodes of a kernel, and those between results, and between operands of reductions, of equal shape.
std::vector<AxisLink> axis_links(const Program &program);

/// The link of a node and its first operand.
AxisLink first_link(const Program &program, const Node &node);

/// Products of the extents from each axis on: `[2, 3, 4]` gives 24, 12, 4, 1.
std::vector<Extent> suffix_products(const Extents &shape);

} // namespace scalide
