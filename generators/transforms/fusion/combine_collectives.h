#pragma once
#include "ir/program.h"

namespace scalide {

/// Makes one collective of all collectives of the same operator and group that need the same number of collectives before them, in a
/// program and in each region. Such collectives do not depend on each other, and one message is faster than many: a message costs
/// microseconds, however short it is. The gradients of a training step are thus summed by two messages.
Program combine_collectives(const Program &program);

} // namespace scalide
