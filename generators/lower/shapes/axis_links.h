#pragma once
#include "ir/program.h"

namespace scalide {

/// Maps axes of one value to axes of another: an operand and a result of a node, or two values that should keep equal shapes.
struct AxisLink {
    static constexpr int free = -1;    ///< no counterpart; may be dropped or merged with free neighbours (a new axis of a broadcast)
    static constexpr int reduced = -2; ///< must stay; may be merged with reduced neighbours
    static constexpr int fixed = -3;   ///< must stay an axis of its own (it is sliced, padded, contracted ...)

    struct Side {
        ValueId value = -1;    ///< -1: this side has no value
        std::vector<int> axes; ///< by axis of `value`: the axis on the other side, or `free`, `reduced` or `fixed`
    };
    Side sides[2];
    bool is_reshape = false; ///< axes correspond if the products of the extents after them are equal; other axes are free
};

/// Returns the links of all nodes of a kernel, and links between results, inout arguments and operands of reductions with equal shapes.
std::vector<AxisLink> axis_links(const Program &program);

/// Returns the link of a node and its first operand.
AxisLink first_link(const Program &program, const Node &node);

/// Returns the products of the extents from each axis on: `[2, 3, 4]` gives 24, 12, 4, 1.
std::vector<Extent> suffix_products(const Extents &shape);

} // namespace scalide
