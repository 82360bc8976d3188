#pragma once
#include "transforms/simplify/region_edit.h"

namespace scalide {

/// Splits products of the body of a loop, so that a part of them can leave it. Return true if they changed the body.
///
///     concatenate(x, h) @ w              x @ slice(w) + h @ slice(w), if x is known before the loop
///     slice(d @ w), slice(d @ w) ...     d @ slice(w), d @ slice(w), if one of them is a stack that no step reads
///
/// Recurrent networks concatenate their input and their state, and the gradient slices what it gets.
bool split_concatenated_products(RegionEdit &edit);
bool split_sliced_products(RegionEdit &edit);

} // namespace scalide
