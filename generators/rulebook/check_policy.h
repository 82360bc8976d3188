#pragma once
#include "rulebook/policy.h"
#include "rulebook/rulebook.h"

namespace scalide {

/// Checks a policy against the rulebook, independent of a program. Throws UserError at the rule of the policy.
/// - Operators, operands, results and attributes that it names must exist.
/// - An inserted operator must map a float array to a float array of the same shape.
/// - A replacement must have the operands, results and attributes of the operator that it replaces.
/// - State that a rule names must be declared in the policy.
void check_policy(const Policy &policy, const Rulebook &rulebook);

/// Returns the name of the state that is the second operand of an inserted operator, if there is one.
std::optional<std::string> state_of(const Rule &rule, const Insertion &insertion);

} // namespace scalide
