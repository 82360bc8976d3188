#pragma once
#include "transforms/numerics/policy_states.h"

namespace scalide {

/// What a region does with states: a branch gives their next values, the body of a loop carries them, a test only gets them.
enum class StateUse : uint8_t { chosen, carried, passed };

/// Adds states to a region, in this order, so that all regions of a node have the same arguments. A branch gives the next values of its
/// states, and the body of a loop carries the largest of them.
void add_states(Program &region, Builder &builder, const std::vector<StateInRegion> &states, StateUse use);

/// Returns the number of the operand that each argument of the regions captures; -1 for elements, carries and numbers of steps.
std::vector<int> captured_operands(const Node &node);

/// Returns the states that one of the regions of a node reads, each once.
std::vector<StateInRegion> states_of_all(const std::vector<std::vector<StateInRegion>> &by_region);

/// Returns the states with the values that they have in one region.
std::vector<StateInRegion> as_in(const std::vector<StateInRegion> &all, const std::vector<StateInRegion> &region);

} // namespace scalide
