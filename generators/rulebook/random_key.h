#pragma once
#include "ir/program.h"
#include "rulebook/rule.h"

namespace scalide {

/// The argument called `name`, from which random rounding draws. UserError unless it is there, a plain u32[2].
ValueId random_key(const Program &program, const std::string &name);

/// True for an operator on one array and a key, which a policy may insert on a value.
bool takes_key(const Rule &rule);

} // namespace scalide
