#pragma once
#include <Halide.h>

// Arithmetic of integers of 8, 16 and 32 bits as XLA does it: what leaves the width wraps around, nothing traps. Both operands have one
// type; results have it too.

namespace scalide::integers {

Halide::Expr add(const Halide::Expr &a, const Halide::Expr &b);
Halide::Expr sub(const Halide::Expr &a, const Halide::Expr &b);
Halide::Expr mul(const Halide::Expr &a, const Halide::Expr &b);
/// Towards zero; x / 0 has all bits set (-1), the smallest integer divided by -1 is itself.
Halide::Expr div(const Halide::Expr &a, const Halide::Expr &b);
/// With the sign of the dividend; x % 0 = x.
Halide::Expr rem(const Halide::Expr &a, const Halide::Expr &b);
Halide::Expr neg(const Halide::Expr &x);
Halide::Expr abs(const Halide::Expr &x);
/// -1, 0 or 1.
Halide::Expr sign(const Halide::Expr &x);
/// `power` is at least 0.
Halide::Expr integer_pow(Halide::Expr x, int power);

/// The distance is taken as unsigned; past the width all bits are 0, or the sign.
Halide::Expr shift_left(const Halide::Expr &x, const Halide::Expr &distance);
Halide::Expr shift_right_logical(const Halide::Expr &x, const Halide::Expr &distance);
Halide::Expr shift_right_arithmetic(const Halide::Expr &x, const Halide::Expr &distance);
Halide::Expr population_count(const Halide::Expr &x);
/// Leading zeros; the width for 0.
Halide::Expr clz(const Halide::Expr &x);

} // namespace scalide::integers
