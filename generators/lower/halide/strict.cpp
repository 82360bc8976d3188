#include "lower/halide/strict.h"

namespace scalide {

using Halide::Expr;
using Halide::Internal::Call;

namespace {

Expr intrinsic(Call::IntrinsicOp op, const Expr &a, const Expr &b, const Halide::Type &type) {
    return Call::make(type, op, {a, b}, Call::PureIntrinsic);
}

Expr infinity_like(const Expr &x) {
    const bool is_single = x.type().bits() == 32;
    return from_bits(Halide::Internal::make_const(x.type().with_code(Halide::Type::UInt), is_single ? 0x7f800000 : uint64_t(0x7ff) << 52));
}

} // namespace

Expr strict_add(const Expr &a, const Expr &b) { return intrinsic(Call::strict_add, a, b, a.type()); }
Expr strict_sub(const Expr &a, const Expr &b) { return intrinsic(Call::strict_sub, a, b, a.type()); }
Expr strict_mul(const Expr &a, const Expr &b) { return intrinsic(Call::strict_mul, a, b, a.type()); }
// Halide refuses to divide by a constant 0. For every a, a / 0 equals a * inf.
Expr strict_div(const Expr &a, const Expr &b) {
    if (!Halide::Internal::is_const_zero(b)) return intrinsic(Call::strict_div, a, b, a.type());
    return strict_mul(a, from_bits(sign_bit(b) | float_bits(infinity_like(a))));
}
Expr strict_eq(const Expr &a, const Expr &b) { return intrinsic(Call::strict_eq, a, b, Halide::Bool()); }
Expr strict_lt(const Expr &a, const Expr &b) { return intrinsic(Call::strict_lt, a, b, Halide::Bool()); }
// Halide 21 compiles its own strict_le as !(b < a), which is true for NaN.
Expr strict_le(const Expr &a, const Expr &b) { return strict_lt(a, b) || strict_eq(a, b); }

Expr float_bits(const Expr &x) { return Halide::reinterpret(x.type().with_code(Halide::Type::UInt), x); }
Expr from_bits(const Expr &bits) { return Halide::reinterpret(bits.type().with_code(Halide::Type::Float), bits); }
Expr bits32(uint32_t bits) { return Halide::Internal::make_const(Halide::UInt(32), static_cast<uint64_t>(bits)); }
Expr float32(uint32_t bits) { return from_bits(bits32(bits)); }

Expr constant_like(const Expr &x, double value) { return Halide::Internal::make_const(x.type(), value); }

// x + -0 would not work: if a kernel contains both -0 and 0, Halide treats them as one constant.
Expr strict(const Expr &x) { return strict_mul(x, constant_like(x, 1)); }

Expr sign_bit(const Expr &x) {
    Expr bits = float_bits(x);
    return bits & Halide::Internal::make_const(bits.type(), uint64_t(1) << (bits.type().bits() - 1));
}

Expr magnitude_bits(const Expr &x) {
    Expr bits = float_bits(x);
    return bits & Halide::Internal::make_const(bits.type(), (uint64_t(1) << (bits.type().bits() - 1)) - 1);
}

// Rotates the bits to the left, and back. LLVM does not follow the float through the rotations, and removes both when it selects
// instructions. The second rotation divides the bits of the exponent. If all bits that a test reads came from one shift, LLVM would see a
// mask of the float.
Expr without_assumptions(const Expr &x) {
    if (!x.type().is_float()) return x;
    const int bits = x.type().bits();
    const auto rotated = [&](const Expr &word, int left) { return (word << left) | (word >> (bits - left)); };
    const int back = bits == 32 ? 27 : 58;
    return from_bits(rotated(rotated(float_bits(x), bits - back), back));
}

Expr widened(const Expr &x) {
    const auto wide = [](const Expr &bits) { return Halide::cast<uint64_t>(bits); };
    Expr fraction = wide(float_bits(x) & bits32(0x7fffff)) << 29, infinity = float_bits(infinity_like(Expr(0.0)));
    Expr is_finite = magnitude_bits(x) < bits32(0x7f800000);
    return Halide::select(is_finite, Halide::cast<double>(x), from_bits((wide(sign_bit(x)) << 32) | infinity | fraction));
}

// Numbers of at least the largest f32 plus half a unit round to infinity.
Expr narrowed(const Expr &x) {
    Expr sign = Halide::cast<uint32_t>(sign_bit(x) >> 32),
         rest = Halide::select(scalide::is_nan(x), bits32(0x7fc00000), bits32(0x7f800000));
    Expr is_finite = strict_lt(from_bits(magnitude_bits(x)), Expr(0x1.ffffffp127));
    return Halide::select(is_finite, Halide::cast<float>(x), from_bits(sign | rest));
}

Expr is_nan(const Expr &x) {
    Expr bits = magnitude_bits(x);
    return bits > Halide::Internal::make_const(bits.type(), bits.type().bits() == 32 ? uint64_t(0x7f800000) : uint64_t(0x7ff) << 52);
}

// Multiplies by +-1 instead of merging bits. LLVM 21.1.1 merges bits by one vpternlog on AVX-512. If a select between the result and x
// follows, LLVM swaps its operands.
Expr with_sign_of(const Expr &magnitude, const Expr &x) {
    return strict_mul(from_bits(magnitude_bits(magnitude)), unit_with_sign(sign_bit(x)));
}

Expr unit_with_sign(const Expr &sign) {
    Expr one = float_bits(Halide::Internal::make_const(Halide::Float(sign.type().bits()), 1.0));
    return from_bits(sign | one);
}

Expr polynomial(const Expr &x, std::initializer_list<double> coefficients) { return polynomial(x, std::span(coefficients)); }

Expr polynomial(const Expr &x, std::span<const double> coefficients) {
    Expr sum;
    for (double coefficient : coefficients) {
        Expr term = constant_like(x, coefficient);
        sum = sum.defined() ? sum * x + term : term;
    }
    return sum;
}

} // namespace scalide
