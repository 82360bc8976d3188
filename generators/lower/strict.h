#pragma once
#include <Halide.h>

// Floating point operations that keep IEEE semantics inside a kernel of Halide's default mode (nnan ninf nsz reassoc contract afn):
// NaN, infinities and signed zeros survive, nothing is reassociated or contracted. Each is one strict intrinsic: unlike
// Halide::strict_float, which rewrites the whole tree under it, it leaves its operands as they are.

namespace scalide {

Halide::Expr strict_add(const Halide::Expr &a, const Halide::Expr &b);
Halide::Expr strict_sub(const Halide::Expr &a, const Halide::Expr &b);
Halide::Expr strict_mul(const Halide::Expr &a, const Halide::Expr &b);
Halide::Expr strict_div(const Halide::Expr &a, const Halide::Expr &b);
/// Ordered comparisons: false when an operand is NaN.
Halide::Expr strict_eq(const Halide::Expr &a, const Halide::Expr &b);
Halide::Expr strict_lt(const Halide::Expr &a, const Halide::Expr &b);
Halide::Expr strict_le(const Halide::Expr &a, const Halide::Expr &b);

/// The bits of an f32 (f64) as an unsigned integer, and back.
Halide::Expr float_bits(const Halide::Expr &x);
Halide::Expr from_bits(const Halide::Expr &bits);
/// Constants with exactly these bits.
Halide::Expr bits32(uint32_t bits);
Halide::Expr float32(uint32_t bits);

} // namespace scalide
