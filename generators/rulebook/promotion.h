#pragma once
#include "ir/type.h"
#include <span>

namespace scalide {

/// Returns the dtype to which both dtypes are promoted: bool < integers < 8-bit floats < f16, bf16 < f32 < f64. Two different float formats
/// of the same width give f32. Integers follow JAX (i8 and u8 give i16), up to i32.
Dtype promoted_dtype(Dtype a, Dtype b);
Dtype promoted_dtype(std::span<const Type> types);

/// Returns the shape to which both shapes broadcast, as in NumPy. Throws UserError (without location) if they do not broadcast.
Extents broadcast_shape(const Extents &a, const Extents &b);

} // namespace scalide
