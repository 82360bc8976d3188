#pragma once
#include "rulebook/builder.h"

namespace scalide {

/// Returns the cotangent of one operand of a node that is linear in it (rules with `grad: derived`). `ct` is the cotangent of the node's
/// only result. Returns -1 if the operand gets no cotangent. Throws InternalError for an operator that is not in the table.
ValueId transpose_operator(Builder &builder, const Node &node, int operand, ValueId ct);

} // namespace scalide
