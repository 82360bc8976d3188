#pragma once
#include "ir/program.h"

namespace scalide {

/// True for an operator that reduces axes of its operand: reduce_sum, argmax and the like.
bool is_reduction(const Node &node);
/// Returns the axes that a reduction reduces, as axes of the operand, in the order of the attribute `axes` or `axis`.
std::vector<int64_t> reduced_axes(const Node &node);
/// True if the reduced axes come after all others. Axes of extent 1 do not count.
bool reduces_trailing(const Program &program, const Node &node);
/// True if the reduced axes come before all others. Axes of extent 1 do not count.
bool reduces_leading(const Program &program, const Node &node);

} // namespace scalide
