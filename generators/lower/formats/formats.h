#pragma once
#include "ir/dtype.h"
#include <Halide.h>

// Storage codes to and from f32 as integer Exprs, generated from FormatSpec: bit exact whatever the float mode of the kernel around them.
// Neither direction multiplies a subnormal number (a trap of 100 cycles and more on some CPUs) nor computes in Halide's own 16-bit types,
// whose conversions lose NaN and may be narrowed into half precision arithmetic; they stand where a machine converts by an instruction.

namespace scalide {

/// The type of one element in memory: f32, f64 and integers as they are, 16-bit formats UInt(16), 8-bit formats and bool UInt(8).
Halide::Type storage_type(Dtype dtype);

/// The f32 value of a storage code; f32 itself passes through. NaN codes give NaN.
Halide::Expr decode(Dtype dtype, const Halide::Expr &code);
Halide::Expr decode(const FormatSpec &format, const Halide::Expr &code);

/// The storage code (UInt(8) or UInt(16)) of an f32 value, as scalide::encode of ir/dtype.h gives it; f32 passes through.
Halide::Expr encode(Dtype dtype, const Halide::Expr &value, Overflow overflow = Overflow::saturate);
Halide::Expr encode(const FormatSpec &format, const Halide::Expr &value, Overflow overflow);

/// The value of a storage code as BFloat(16), for bf16 dot products. Exact; throws InternalError for formats with more than 7 bits of
/// mantissa (f16, f32).
Halide::Expr decode_bf16(Dtype dtype, const Halide::Expr &code);

/// decode(encode(value)): the f32 value that a convert to `dtype` leaves.
Halide::Expr round_to(Dtype dtype, const Halide::Expr &value, Overflow overflow = Overflow::saturate);

} // namespace scalide
