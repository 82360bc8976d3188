#pragma once
#include "rulebook/rulebook.h"

namespace scalide {

/// C++ functions of the DSL, one for each rule: `inline Tensor softmax(const Operand &x, const std::vector<int64_t> &axes = all_axes)`.
/// Attributes follow the operands in the rule's order, those that may be left out last.
std::string operators_header(const Rulebook &rulebook);

/// Markdown files by name: for each operator its operands and attributes, formula, scale, data, gradient, constraints, tolerance and an
/// example; README.md is the coverage table.
std::map<std::string, std::string> operator_pages(const Rulebook &rulebook);

/// Markdown: operator, family, value (base or made of others), scaled (by strategy), forms full values, gradient, how often its laws are
/// tried.
std::string coverage_table(const Rulebook &rulebook);

} // namespace scalide
