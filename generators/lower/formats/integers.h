#pragma once
#include <Halide.h>

// Arithmetic of 8-, 16- and 32-bit integers with XLA's semantics: results wrap around, and nothing traps. Both operands and the result have
// the same type.

namespace scalide::integers {

Halide::Expr add(const Halide::Expr &a, const Halide::Expr &b);
Halide::Expr sub(const Halide::Expr &a, const Halide::Expr &b);
Halide::Expr mul(const Halide::Expr &a, const Halide::Expr &b);
/// Rounds towards zero. x / 0 has all bits set (-1). The smallest integer divided by -1 is itself.
Halide::Expr div(const Halide::Expr &a, const Halide::Expr &b);
/// The result has the sign of the dividend; x % 0 = x.
Halide::Expr rem(const Halide::Expr &a, const Halide::Expr &b);
Halide::Expr neg(const Halide::Expr &x);
Halide::Expr abs(const Halide::Expr &x);
/// -1, 0 or 1.
Halide::Expr sign(const Halide::Expr &x);
/// `power` must be at least 0.
Halide::Expr integer_pow(Halide::Expr x, int power);

/// The distance is unsigned. If it reaches the width, the result is 0, or all sign bits for an arithmetic shift.
Halide::Expr shift_left(const Halide::Expr &x, const Halide::Expr &distance);
Halide::Expr shift_right_logical(const Halide::Expr &x, const Halide::Expr &distance);
Halide::Expr shift_right_arithmetic(const Halide::Expr &x, const Halide::Expr &distance);
Halide::Expr population_count(const Halide::Expr &x);
/// Returns the number of leading zeros; the width for 0.
Halide::Expr clz(const Halide::Expr &x);

} // namespace scalide::integers
