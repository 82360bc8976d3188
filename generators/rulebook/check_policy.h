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

/// Adds the attribute `dtype` if the operator has it and the policy does not give it. It is the format that the policy rule stores.
void add_stored_dtype(const Rule &rule, std::optional<Dtype> stored, Attributes &attributes);

/// The operator that computes the next value of a state (PolicyState::next), with its operands resolved.
struct NextState {
    std::vector<const PolicyState *> others; ///< of each operand after the first: the state that it names; nullptr: the tensor
    Attributes attributes;                   ///< without the names of states. A missing `dtype` is the format that the policy rule stores
};
NextState next_state(const Policy &policy, const PolicyState &state, const Rule &rule, std::optional<Dtype> stored);

} // namespace scalide
