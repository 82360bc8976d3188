#pragma once
#include "transforms/simplify/region_edit.h"

namespace scalide {

/// A loop that reads a stack of an earlier loop computes the elements itself, if that loop computes them by a few cheap nodes from values
/// that this loop reads, too: 1 - y, if it also reads the stack of y. The earlier loop then need not store them. Returns true if it changed
/// the node.
bool compute_cheap_elements(RegionEdit &edit);

} // namespace scalide
