#pragma once
#include "rulebook/rulebook.h"

namespace scalide {

/// C++ functions of the DSL, one for each rule: `inline Tensor softmax(const Operand &x, const std::vector<int64_t> &axes)`.
/// Attributes follow the operands in the rule's order, those with a default last.
std::string operators_header(const Rulebook &rulebook);

/// Markdown: formula, scale, data and gradient of each operator, its attributes and constraints, domain and tolerance.
std::string operators_reference(const Rulebook &rulebook);

/// Markdown: operator, family, plain, scaled (by strategy), forms full values, gradient.
std::string coverage_table(const Rulebook &rulebook);

} // namespace scalide
