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
/// A constant of the type of `x`.
Halide::Expr constant_like(const Halide::Expr &x, double value);

/// x itself. Marks the kernel as one with strict operations; no instruction is left of it.
Halide::Expr strict(const Halide::Expr &x);
/// All bits of an f32 or f64 but the sign, and the sign alone.
Halide::Expr magnitude_bits(const Halide::Expr &x);
Halide::Expr sign_bit(const Halide::Expr &x);
/// f32 as f64 and f64 as f32, with their infinities and NaN: LLVM counts on a cast of floats having none, and a comparison of what a cast
/// made of one says anything.
Halide::Expr widened(const Halide::Expr &x);
Halide::Expr narrowed(const Halide::Expr &x);
/// Halide's is_nan is a comparison of x with itself, which does not survive in every context.
Halide::Expr is_nan(const Halide::Expr &x);
/// |magnitude| with the sign of `x`.
Halide::Expr with_sign_of(const Halide::Expr &magnitude, const Halide::Expr &x);
/// +1 or -1: `sign` is a word with all bits but the highest clear.
Halide::Expr unit_with_sign(const Halide::Expr &sign);

/// Sum of coefficients[i] * x^(n - 1 - i) by Horner's rule. May be contracted to FMAs; `x` must be finite.
Halide::Expr polynomial(const Halide::Expr &x, std::initializer_list<double> coefficients);

} // namespace scalide
