#pragma once
#include "ir/program.h"
#include <span>

namespace scalide {

/// Returns the one value of all result elements of `node`, if every element of operand i is operands[i]. The value is evaluated in f64 and
/// rounded once to the result's dtype. Returns nothing if the value depends on unknown extents or does not fit the dtype.
std::optional<double> fold_constants(const Program &program, const Node &node, const Type &result, std::span<const double> operands);

} // namespace scalide
