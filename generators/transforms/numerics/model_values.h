#pragma once
#include "transforms/numerics/policy_roles.h"

namespace scalide {

/// Returns the results of the nodes that belong to a model or to its gradient. The other nodes are updates: an optimizer, a loss scaler,
/// statistics. Only the data flow decides:
/// - A node with the role cotangent belongs to a gradient.
/// - A primal node that depends on a gradient is an update.
/// - A primal node on which neither a gradient nor an output depends, only new values of inout arguments, is an update.
/// Policies round the arithmetic of models with `compute`, but an update that is rounded to f16 would lose small steps.
std::set<ValueId> model_values(const Program &program);

/// Returns the inout arguments that are state of an optimizer, such as the moments of Adam. Only the data flow decides:
/// - No output and no gradient depends on the argument. So it is no parameter.
/// - The new value of a parameter depends on it. So it is no running statistic, and no average of parameters.
/// - No other new value is a moved or converted form of its new value. So it is no master copy.
std::set<ValueId> optimizer_states(const Program &program, const PolicyRoles &roles);

} // namespace scalide
