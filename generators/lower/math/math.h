#pragma once
#include <Halide.h>

// The functions of the base operators as Exprs over f32. They use vector instructions only, no libm. They are correct for NaN, infinities,
// signed zeros and subnormal operands and results, with an error of at most 2 ulp. Measured errors in ulp, over all f16 and bf16 values and
// 2^22 random f32 (tests/unit/lower/math.cpp; all 2^32 values in tests/exhaustive):
//   logistic 1.9, atan 1.8, asin 1.6, rsqrt 1.5; acos, sin and cos below 1.5; exp and exp2 1.02; log and log1p 0.9; all others 0.51
//
// Fast math. Halide compiles a kernel with nnan ninf nsz reassoc contract afn. Under these flags, inf - inf is 0, and NaN == NaN is true.
// As soon as a kernel contains one strict operation, only its non-strict operations have these flags. Therefore:
// - Every operation of a program (add, mul, comparisons ...) is strict. Nothing is contracted across nodes, so a value has the same bits
//   whether it is fused or not. x + 1 over 128 KiB: 8.5 Gelem/s fast, 8.7 strict (one core of a Xeon with AVX-512, Sapphire Rapids,
//   2026-11).
// - The inside of a polynomial may be contracted to FMAs. Its argument is finite, it is enclosed by strict operations, and it is the same
//   in every kernel. exp: 1.4 Gelem/s strict, 1.9 with FMAs (same machine).
// - The sum of products of a matmul is not strict. A strict a * b + c is no FMA on a CPU, so a strict sum would halve the speed of a
//   matmul.
//
// A function computes in f64 if its error in f32 would exceed 2 ulp. A polynomial in f64 costs as much as two in f32.

namespace scalide::math {

// f32 in, f32 out.
Halide::Expr exp(const Halide::Expr &x);
Halide::Expr exp2(const Halide::Expr &x);
Halide::Expr expm1(const Halide::Expr &x);
Halide::Expr logistic(const Halide::Expr &x);
Halide::Expr tanh(const Halide::Expr &x);
Halide::Expr log(const Halide::Expr &x);
/// Exact for powers of two.
Halide::Expr log2(const Halide::Expr &x);
Halide::Expr log1p(const Halide::Expr &x);
Halide::Expr pow(const Halide::Expr &x, const Halide::Expr &y);
Halide::Expr erf(const Halide::Expr &x);
Halide::Expr erfc(const Halide::Expr &x);
Halide::Expr sinh(const Halide::Expr &x);
Halide::Expr cosh(const Halide::Expr &x);
Halide::Expr asinh(const Halide::Expr &x);
Halide::Expr acosh(const Halide::Expr &x);
Halide::Expr atanh(const Halide::Expr &x);
/// For any argument. It is reduced modulo pi/2 with as many bits of 2/pi as necessary.
Halide::Expr sin(const Halide::Expr &x);
Halide::Expr cos(const Halide::Expr &x);
Halide::Expr tan(const Halide::Expr &x);
Halide::Expr asin(const Halide::Expr &x);
Halide::Expr acos(const Halide::Expr &x);
Halide::Expr atan(const Halide::Expr &x);
/// The angle of the point (x, y). For zeros and infinities of both signs, the angle is C's.
Halide::Expr atan2(const Halide::Expr &y, const Halide::Expr &x);

// Special functions: at least as accurate as JAX's, with the same values at poles and edges.
Halide::Expr erf_inv(const Halide::Expr &x);
Halide::Expr lgamma(const Halide::Expr &x);
Halide::Expr digamma(const Halide::Expr &x);
/// The Hurwitz zeta function, the sum of (q + i)^-x. q must not be far below zero.
Halide::Expr zeta(const Halide::Expr &x, const Halide::Expr &q);
Halide::Expr igamma(const Halide::Expr &a, const Halide::Expr &x);
Halide::Expr igammac(const Halide::Expr &a, const Halide::Expr &x);
/// For a and b up to 1000; less accurate beyond.
Halide::Expr regularized_incomplete_beta(const Halide::Expr &a, const Halide::Expr &b, const Halide::Expr &x);
Halide::Expr bessel_i0e(const Halide::Expr &x);
Halide::Expr bessel_i1e(const Halide::Expr &x);

/// C's fmod, exact.
Halide::Expr rem(const Halide::Expr &x, const Halide::Expr &y);
Halide::Expr reduce_precision(const Halide::Expr &x, int exponent_bits, int mantissa_bits);

/// The f32 next to x in the direction of y; y if both are equal.
Halide::Expr nextafter(const Halide::Expr &x, const Halide::Expr &y);

// f32 or f64.
/// In f64, the relative error is 2^-34.
Halide::Expr cbrt(const Halide::Expr &x);
Halide::Expr sqrt(const Halide::Expr &x);
Halide::Expr rsqrt(const Halide::Expr &x);
/// If an operand is NaN, the result is NaN. +0 counts as larger than -0.
Halide::Expr max(const Halide::Expr &a, const Halide::Expr &b);
Halide::Expr min(const Halide::Expr &a, const Halide::Expr &b);
Halide::Expr abs(const Halide::Expr &x);
/// -1, -0, +0, 1 or NaN.
Halide::Expr sign(const Halide::Expr &x);
Halide::Expr floor(const Halide::Expr &x);
Halide::Expr ceil(const Halide::Expr &x);
/// Ties go to the even integer.
Halide::Expr round(const Halide::Expr &x);
Halide::Expr is_finite(const Halide::Expr &x);
/// x to a constant power; 1 for power 0.
Halide::Expr integer_pow(const Halide::Expr &x, int power);
/// Round to a power of two: towards zero, away from zero (exact powers stay), to the nearest (ties away from zero). Zero, infinities and
/// NaN stay, and the sign is kept. Subnormal f32 are rounded like all others.
Halide::Expr pow2_down(const Halide::Expr &x);
Halide::Expr pow2_up(const Halide::Expr &x);
Halide::Expr pow2_nearest(const Halide::Expr &x);

} // namespace scalide::math
