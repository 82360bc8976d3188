#pragma once
#include "rulebook/builder.h"

namespace scalide {

/// A value of the body of a loop, in all steps.
struct StepsValue {
    ValueId value = -1;
    bool varies = false; ///< true: `value` has an axis for the steps in front. false: it is the same in each step
};

/// True if one node can compute `node` of the body for all steps. `varies` says of each operand whether it varies.
bool can_batch(const Rulebook &rulebook, const Program &body, const Node &node, const std::vector<bool> &varies);

/// Adds the node that computes `node` of the body for all steps, at least one operand of which varies. Returns its result, with an axis of
/// `length` in front.
ValueId add_batched(Builder &builder, const Program &body, const Node &node, const Extent &length, std::vector<StepsValue> operands);

/// Adds a dot_general that also sums over the steps. Both operands vary.
ValueId add_sum_of_products(Builder &builder, const Node &dot, Dtype preferred, ValueId lhs, ValueId rhs);

/// Returns the axes of an array that has an axis for the steps in front.
std::vector<int64_t> after_steps(std::vector<int64_t> axes);

} // namespace scalide
