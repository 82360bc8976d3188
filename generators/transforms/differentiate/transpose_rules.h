#pragma once
#include "rulebook/builder.h"

namespace scalide {

/// The cotangent of operand number `operand` of a node that is linear in it, from the cotangent `ct` of its one result: the rule
/// `grad: derived`. -1 when none flows. Throws InternalError for an operator that is not in the table.
ValueId transpose_operator(Builder &builder, const Node &node, int operand, ValueId ct);

} // namespace scalide
