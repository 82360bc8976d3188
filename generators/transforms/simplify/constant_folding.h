#pragma once
#include "ir/program.h"
#include <span>

namespace scalide {

/// The number that every element of the one result of `node` is, when every element of operand i is operands[i]: f64 evaluation, rounded
/// once to the result's dtype. Nothing when it can't be told without knowing extents, or when it does not fit the dtype.
std::optional<double> fold_constants(const Program &program, const Node &node, const Type &result, std::span<const double> operands);

} // namespace scalide
