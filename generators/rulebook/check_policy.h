#pragma once
#include "rulebook/policy.h"
#include "rulebook/rulebook.h"

namespace scalide {

/// Checks what a policy says about operators, whatever the program: those that its rows choose and insert are in the rulebook, operands,
/// results and attributes are theirs, an inserted one makes of a float array another of its shape, and one that replaces another has its
/// operands, results and attributes; states that rows name are the policy's. Throws UserError at the row.
void check_policy(const Policy &policy, const Rulebook &rulebook);

/// The name of the state that an insertion gives as the second operand of its operator, if it gives one.
std::optional<std::string> state_of(const Rule &rule, const Insertion &insertion);

} // namespace scalide
