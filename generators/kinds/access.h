#pragma once
#include "ir/program.h"

namespace scalide {

/// How a reader maps the index of its element to the index of the element that it reads.
enum class Access : uint8_t {
    same,    ///< the same index, except for axes of extent 1
    scalar,  ///< one element, broadcast
    rows,    ///< the leading axes of the reader's index: broadcast along the trailing axes
    columns, ///< the trailing axes: broadcast along the leading axes
    moved,   ///< any other movement
};

/// Returns how `node`, an elementwise or movement operator, reads its operands. With `operand`: a rank-0 operand of array arithmetic is one
/// element for all.
Access access_of(const Program &program, const Node &node);
Access access_of(const Program &program, const Node &node, ValueId operand);
/// Returns the access through two nodes, one after the other.
Access compose(Access inner, Access outer);

} // namespace scalide
