#pragma once
#include <Halide.h>

// Functions that several functions of math.h compute in f64, because f32 is not enough. Their relative error is at most 2^-34.

namespace scalide::math {

/// e^x and e^x - 1, for |x| <= 700.
Halide::Expr exp_f64(const Halide::Expr &x);
Halide::Expr expm1_f64(const Halide::Expr &x);
/// The natural logarithm of a positive, normal, finite f64. For other arguments, the result is undefined.
Halide::Expr log_f64(const Halide::Expr &x);
/// The complementary error function. In f32, it is 0 beyond 10.3.
Halide::Expr erfc_f64(const Halide::Expr &x);
/// The logarithm of the gamma function, for positive arguments up to 1e77.
Halide::Expr lgamma_f64(const Halide::Expr &x);

} // namespace scalide::math
