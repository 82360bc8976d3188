#pragma once
#include <Halide.h>
#include <span>

// Floating-point operations that keep IEEE semantics inside a kernel of Halide's default mode (nnan ninf nsz reassoc contract afn). NaN,
// infinities and signed zeros are preserved, and nothing is reassociated or contracted. Each is one strict intrinsic. Halide::strict_float
// rewrites the whole expression; these functions do not change their operands.

namespace scalide {

Halide::Expr strict_add(const Halide::Expr &a, const Halide::Expr &b);
Halide::Expr strict_sub(const Halide::Expr &a, const Halide::Expr &b);
Halide::Expr strict_mul(const Halide::Expr &a, const Halide::Expr &b);
Halide::Expr strict_div(const Halide::Expr &a, const Halide::Expr &b);
/// Ordered comparisons: false if an operand is NaN.
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

/// Returns x, about which LLVM then assumes nothing. LLVM assumes that a sum in Halide's default mode is never NaN or infinite, so a test
/// of the sum for NaN could give anything. No instruction remains where the processor can rotate words.
Halide::Expr without_assumptions(const Halide::Expr &x);
/// Returns x. Marks the kernel as one with strict operations; no instruction remains.
Halide::Expr strict(const Halide::Expr &x);
/// All bits of an f32 or f64 except the sign, and the sign bit alone.
Halide::Expr magnitude_bits(const Halide::Expr &x);
Halide::Expr sign_bit(const Halide::Expr &x);
/// Convert f32 to f64 and f64 to f32, including infinities and NaN. LLVM assumes that a float cast has none, so a comparison of the result
/// of a plain cast could return anything.
Halide::Expr widened(const Halide::Expr &x);
Halide::Expr narrowed(const Halide::Expr &x);
/// Halide's is_nan compares x with itself, which optimisation may remove.
Halide::Expr is_nan(const Halide::Expr &x);
/// |magnitude| with the sign of `x`.
Halide::Expr with_sign_of(const Halide::Expr &magnitude, const Halide::Expr &x);
/// Returns +1 or -1. `sign` is a word in which only the highest bit may be set.
Halide::Expr unit_with_sign(const Halide::Expr &sign);

/// Returns the sum of coefficients[i] * x^(n - 1 - i) by Horner's rule. It may be contracted to FMAs; `x` must be finite.
Halide::Expr polynomial(const Halide::Expr &x, std::initializer_list<double> coefficients);
Halide::Expr polynomial(const Halide::Expr &x, std::span<const double> coefficients);

} // namespace scalide
