#pragma once
#include "scalide/scalide.h"

namespace scalide {

/// Returns true if a dense array in the host's memory contains an infinity or a NaN. Integers and bools contain neither.
bool has_non_finite(const scalide_array &array);

} // namespace scalide
