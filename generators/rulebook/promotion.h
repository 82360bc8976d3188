#pragma once
#include "ir/type.h"
#include <span>

namespace scalide {

/// The dtype that both widen to: bool < integers < 8-bit formats < f16, bf16 < f32 < f64. Two formats of one width meet in f32;
/// integers meet as in JAX (i8 and u8 in i16), in i32 at most.
Dtype promoted_dtype(Dtype a, Dtype b);
Dtype promoted_dtype(std::span<const Type> types);

/// The shape that both broadcast to, aligned at the last axis, extent-1 axes growing. UserError (without place) when there is none.
Extents broadcast_shape(const Extents &a, const Extents &b);

} // namespace scalide
