#pragma once
#include "transforms/differentiate/body_vjp.h"

namespace scalide {

/// How the gradient of a loop gets the values of the primal step that it reads.
struct ResidualPlan {
    std::vector<ValueId> arguments;     ///< captures, elements and numbers of steps, which it takes again
    std::vector<ValueId> invariants;    ///< depend only on captures: computed once, outside of the loop
    std::vector<ValueId> stacks;        ///< stacked by the loop, among them carries before a step
    std::vector<size_t> recomputed;     ///< primal nodes that each of its steps computes again, in their order
    std::vector<bool> invariant_values; ///< of all values: depends only on captures
};

/// With `remat`, everything but carries is recomputed, otherwise only constants and what movement makes.
ResidualPlan plan_residuals(const BodyVjp &body, bool remat);

} // namespace scalide
