#pragma once
#include "transforms/simplify/region_edit.h"

namespace scalide {

/// Rules about what is the same in each step, or known before. Each returns true if it changed the node.
bool move_constants_in(RegionEdit &edit);
bool replace_known_elements(RegionEdit &edit);
bool give_known_stacks(RegionEdit &edit);
bool move_invariants_out(RegionEdit &edit);

} // namespace scalide
