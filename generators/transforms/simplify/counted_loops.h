#pragma once
#include "transforms/simplify/region_edit.h"

namespace scalide {

/// Makes a scan with a count of a `while` whose test is i < n, where a step adds 1 to the carry i, an i32[], and never changes n.
bool count_steps(RegionEdit &edit);

} // namespace scalide
