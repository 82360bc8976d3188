#pragma once
#include "transforms/simplify/region_edit.h"

namespace scalide {

/// Rules for loops and branches whose steps or branch are known. Each returns true if it changed the node.
bool inline_chosen_branch(RegionEdit &edit);
bool give_common_captures(RegionEdit &edit);
bool settle_count(RegionEdit &edit);
bool give_start_without_steps(RegionEdit &edit);
bool inline_single_step(RegionEdit &edit);

} // namespace scalide
