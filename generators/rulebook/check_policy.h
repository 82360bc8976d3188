#pragma once
#include "rulebook/policy.h"
#include "rulebook/rulebook.h"

namespace scalide {

/// Checks what a policy says about operators, whatever the program: those that its rows choose and insert are in the rulebook, operands,
/// results and attributes are theirs, an inserted one makes of a float array another of its shape, and one that replaces another has its
/// operands, results and attributes. Throws UserError at the row.
void check_policy(const Policy &policy, const Rulebook &rulebook);

} // namespace scalide
