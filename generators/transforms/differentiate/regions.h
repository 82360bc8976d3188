#pragma once
#include "rulebook/builder.h"

namespace scalide {

/// Appends the gradient of the loop or the branch that is node number `index`. `cts`: the cotangents of its results (-1: zero); `active`:
/// which operands get a cotangent. Returns the cotangents of the operands (-1: zero). The loop becomes a scan that also stacks the values
/// that its gradient reads. Throws UserError if nothing bounds the number of steps.
std::vector<ValueId> append_region_vjp(Builder &builder, size_t index, const std::vector<ValueId> &cts, const std::vector<bool> &active);

} // namespace scalide
