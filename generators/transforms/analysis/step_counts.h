#pragma once
#include "rulebook/builder.h"

namespace scalide {

/// Adds max(upper - lower, 0), or the largest i32 if the difference is beyond it: the number of steps of a loop.
ValueId steps_between(Builder &builder, ValueId lower, ValueId upper);

} // namespace scalide
