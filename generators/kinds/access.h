#pragma once
#include "ir/program.h"

namespace scalide {

/// How the index of a reader's element finds the element that it reads.
enum class Access : uint8_t {
    same,    ///< the same index, up to axes of extent 1
    scalar,  ///< one element, broadcast
    rows,    ///< the leading axes of the reader's index: broadcast along the trailing ones
    columns, ///< the trailing axes: broadcast along the leading ones
    moved,   ///< any other movement
};

/// How `node`, an elementwise or movement operator, reads its operands; of one operand: a rank-0 value that arithmetic on arrays reads is
/// one element for all.
Access access_of(const Program &program, const Node &node);
Access access_of(const Program &program, const Node &node, ValueId operand);
/// Access through two nodes in turn.
Access compose(Access inner, Access outer);

} // namespace scalide
