#pragma once
#include "scalide/scalide.h"

namespace scalide {

/// Whether a dense array in the host's memory holds an infinity or a NaN; integers and bool have none.
bool has_non_finite(const scalide_array &array);

} // namespace scalide
