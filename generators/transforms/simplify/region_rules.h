#pragma once
#include "transforms/simplify/region_edit.h"

namespace scalide {

/// Applies all rules to a node until none changes it. Returns false if none did.
bool apply_region_rules(RegionEdit &edit);

} // namespace scalide
