#pragma once
#include "transforms/simplify/movement_chains.h"

namespace scalide {

/// Moves arithmetic from after reshapes and transposes to before them. A matmul's result is then scaled and rounded in the kernel that
/// computes it. Low-precision values are moved in low precision, and an amax reads the values before they are moved. Returns nothing if the
/// candidate has no such form.
std::optional<ValueId> move_later(const Candidate &candidate);

} // namespace scalide
