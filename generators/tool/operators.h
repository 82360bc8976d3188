#pragma once
#include "rulebook/rulebook.h"

namespace scalide {

/// Returns one C++ function of the DSL for each rule: `inline Tensor softmax(const Operand &x, const std::vector<int64_t> &axes =
/// last_axis)`. Attributes follow the operands in the rule's order. Optional attributes come last.
std::string operators_header(const Rulebook &rulebook);

/// Returns the name of this function. It is the name of the operator, unless C++ uses that name: `and_`, `stddev` for std.
std::string function_name(const Rule &rule);

/// Returns Markdown files by name. The page of an operator has its operands and attributes, formula, scale, data, gradient, constraints,
/// tolerance and an example. README.md is the coverage table.
std::map<std::string, std::string> operator_pages(const Rulebook &rulebook);

/// Returns a Markdown table with one row per operator. It gives the family, kind of value, dtypes, scale (by strategy) and gradient,
/// whether the rule computes data * scale, and the tests.
std::string coverage_table(const Rulebook &rulebook);

} // namespace scalide
