#pragma once
#include "ir/program.h"
#include "rulebook/rule.h"

namespace scalide {

/// Returns the argument `name`, the key for random rounding. Throws UserError if it does not exist or is not a plain u32[2].
ValueId random_key(const Program &program, const std::string &name);

/// Returns true for an operator with one array and a key as operands. A policy may insert such an operator.
bool takes_key(const Rule &rule);

} // namespace scalide
