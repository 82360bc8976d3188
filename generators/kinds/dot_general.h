#pragma once
#include "ir/program.h"
#include <optional>

namespace scalide {

/// Numbers of axes of an operand of dot_general.
struct DotGeneralAxes {
    size_t batch, contracting, free;
};

/// Returns the numbers of axes of the first operand with several axes of one kind. A dot_general of a kernel has no such operand.
std::optional<DotGeneralAxes> several_axes_of_a_kind(const Program &program, const Node &dot);

/// True for the reduce_sum of an operand of the dot_general over the contracted axis, which is a bias gradient.
bool sums_operand(const Node &sum, const Node &dot);

} // namespace scalide
