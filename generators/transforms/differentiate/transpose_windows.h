#pragma once
#include "rulebook/builder.h"

namespace scalide {

/// Returns the cotangent of the operand of a reduce_window_sum: a window sum over `ct` with the same window. Strides and base dilation
/// change places.
ValueId transpose_window_sum(Builder &builder, const Node &node, ValueId ct);

/// Returns the cotangent of an operand of a convolution. For lhs (operand 0), `ct` is convolved with the reversed rhs. For rhs (operand 1),
/// lhs is convolved with `ct`, and images and features change places. The formulas are those of jax.lax.conv_general_dilated.
ValueId transpose_convolution(Builder &builder, const Node &node, int operand, ValueId ct);

} // namespace scalide
