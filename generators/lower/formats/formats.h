#pragma once
#include "ir/dtype.h"
#include <Halide.h>

// Encoding and decoding of low-precision floats as integer Exprs, generated from FormatSpec. The results are bit exact in any float mode of
// the surrounding kernel. No direction multiplies subnormal numbers, which may cost more than 100 cycles on some CPUs. Halide's 16-bit
// float types are avoided, because their conversions lose NaN and may be narrowed to half precision arithmetic. They are used only where a
// machine has a conversion instruction.

namespace scalide {

/// Returns the type of one element in memory: f32, f64 and integers keep their type, 16-bit floats are UInt(16), 8-bit floats and bool are
/// UInt(8).
Halide::Type storage_type(Dtype dtype);

/// Returns the f32 value of a bit pattern; f32 is returned unchanged. Bit patterns of NaN give NaN.
Halide::Expr decode(Dtype dtype, const Halide::Expr &code);
Halide::Expr decode(const FormatSpec &format, const Halide::Expr &code);

/// Returns the bit pattern (UInt(8) or UInt(16)) of an f32 value, as scalide::encode of ir/dtype.h does; f32 is returned unchanged.
Halide::Expr encode(Dtype dtype, const Halide::Expr &value, Overflow overflow = Overflow::saturate);
Halide::Expr encode(const FormatSpec &format, const Halide::Expr &value, Overflow overflow);

/// Returns the exact value of a bit pattern as BFloat(16), for bf16 dot products. Throws InternalError for formats with more than 7
/// mantissa bits (f16, f32).
Halide::Expr decode_bf16(Dtype dtype, const Halide::Expr &code);

/// Returns an f32 value that bf16 holds exactly as BFloat(16), for bf16 dot products.
Halide::Expr exact_bf16(const Halide::Expr &value);

/// Returns decode(encode(value)): the f32 value after rounding to `dtype`.
Halide::Expr round_to(Dtype dtype, const Halide::Expr &value, Overflow overflow = Overflow::saturate);

} // namespace scalide
