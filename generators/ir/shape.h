#pragma once
#include "ir/type.h"

namespace scalide {

/// Shape without its axes of extent 1: two shapes with equal ones are walked by the same index.
Extents without_ones(Extents shape);

} // namespace scalide
