#pragma once
#include "transforms/numerics/policy_roles.h"

namespace scalide {

/// Returns the results of the nodes of a program without regions that belong to a model or to its gradient. The other nodes have the
/// direction `update` (transforms/analysis/directions.h): an optimizer, a loss scaler, statistics.
/// Policies round the arithmetic of models with `compute`, but an update that is rounded to f16 would lose small steps.
std::set<ValueId> model_values(const Program &program);

/// Returns the inout arguments that are state of an optimizer, such as the moments of Adam. Only the data flow decides:
/// - No output and no gradient depends on the argument. So it is no parameter.
/// - The new value of a parameter depends on it. So it is no running statistic, and no average of parameters.
/// - No other new value is a moved or converted form of its new value. So it is no master copy.
std::set<ValueId> optimizer_states(const Program &program, const PolicyRoles &roles);

} // namespace scalide
