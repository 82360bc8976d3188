#pragma once
#include <Halide.h>

// What several functions of math.h compute in f64, where they need more than f32 and less than f64: 2^-34 relative, or better.

namespace scalide::math {

/// e^x and e^x - 1 of a finite f64 within +-700.
Halide::Expr exp_f64(const Halide::Expr &x);
Halide::Expr expm1_f64(const Halide::Expr &x);
/// The natural logarithm of a positive, normal, finite f64; anything else gives a number without meaning.
Halide::Expr log_f64(const Halide::Expr &x);
/// The complementary error function; 0 in f32 beyond 10.3 already.
Halide::Expr erfc_f64(const Halide::Expr &x);
/// The logarithm of the gamma function of a positive f64, at most 1e77.
Halide::Expr lgamma_f64(const Halide::Expr &x);

} // namespace scalide::math
