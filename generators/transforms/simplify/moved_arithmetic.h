#pragma once
#include "transforms/simplify/movement_chains.h"

namespace scalide {

/// Arithmetic that reads a value through reshapes and transposes, done before them: a product is scaled and rounded where it is made, what
/// is stored narrow moves narrow, and the largest element is that of the value before it moved. Nothing when the candidate is none.
std::optional<ValueId> move_later(const Candidate &candidate);

} // namespace scalide
