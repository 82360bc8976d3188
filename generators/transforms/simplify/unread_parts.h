#pragma once
#include "transforms/simplify/region_edit.h"

namespace scalide {

/// Rules about what a loop or a branch does not need. Each returns true if it changed the node.
bool drop_unread_results(RegionEdit &edit);
bool drop_unread_arguments(RegionEdit &edit);
bool merge_equal_arguments(RegionEdit &edit);
bool merge_equal_results(RegionEdit &edit);
bool give_kept_carries(RegionEdit &edit);
bool merge_twin_carries(RegionEdit &edit);

} // namespace scalide
