#pragma once
#include "rulebook/builder.h"

namespace scalide {

/// The cotangent of the operand of a reduce_window_sum: windows of the same shape over the cotangent, strides and base dilation changing
/// places.
ValueId transpose_window_sum(Builder &builder, const Node &node, ValueId ct);

/// The cotangent of lhs (operand 0): the cotangent convolved with the reversed rhs; of rhs (operand 1): lhs convolved with the cotangent,
/// images and features changing places. Formulas: jax.lax.conv_general_dilated.
ValueId transpose_convolution(Builder &builder, const Node &node, int operand, ValueId ct);

} // namespace scalide
