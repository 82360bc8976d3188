#pragma once
#include "ir/program.h"
#include "rulebook/rulebook.h"

namespace scalide {

/// Returns the value of a rule as a program. It has arguments of these types and the operator's results. Extents and attributes are static.
Program program_of_value(const Rulebook &rulebook, const Rule &rule, const std::vector<Type> &operands, const Attributes &attributes);

} // namespace scalide
