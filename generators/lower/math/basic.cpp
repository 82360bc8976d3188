#include "expr/error.h"
#include "lower/halide/strict.h"
#include "lower/math/elementwise_rows.h"
#include "lower/math/math.h"

#include <cmath>
#include <cstdlib>

namespace scalide::math {

using Halide::cast;
using Halide::Expr;
using Halide::select;

namespace {

Expr word(const Expr &like, uint64_t value) { return Halide::Internal::make_const(like.type(), value); }

bool is_constant(const Expr &x) {
    auto value = Halide::Internal::as_const_float(x);
    return value && !std::isnan(*value) && !(*value == 0 && std::signbit(*value));
}

// Computes in f64, in which every f32 is a normal number. `increment` decides when the mantissa carries into the exponent.
Expr round_to_power(const Expr &x, uint64_t increment) {
    Expr bits = float_bits(strict(cast<double>(x)));
    Expr power = from_bits((bits + word(bits, increment)) & word(bits, 0xfff0000000000000u));
    return select(scalide::is_nan(x), x, cast(x.type(), power));
}

Expr power_by_squaring(const Expr &x, unsigned power) {
    Expr square = x, product;
    for (; power != 0; power >>= 1) {
        if (power & 1) product = product.defined() ? strict_mul(product, square) : square;
        square = strict_mul(square, square);
    }
    return product;
}

} // namespace

Expr sqrt(const Expr &x) { return Halide::sqrt(strict(x)); }

// Rounds twice, so the error is at most 1.5 ulp.
Expr rsqrt(const Expr &x) { return strict_div(constant_like(x, 1), math::sqrt(x)); }

// A constant operand (relu, clips) needs one comparison. Otherwise NaN and signed zeros need three.
Expr max(const Expr &a, const Expr &b) {
    if (is_constant(b)) return select(strict_le(a, b), b, a);
    if (is_constant(a)) return math::max(b, a);
    Expr equal_or_nan = select(strict_eq(a, b), from_bits(float_bits(a) & float_bits(b)), strict_add(a, b));
    return select(strict_lt(a, b), b, select(strict_lt(b, a), a, equal_or_nan));
}

Expr min(const Expr &a, const Expr &b) {
    if (is_constant(b)) return select(strict_lt(b, a), b, a);
    if (is_constant(a)) return math::min(b, a);
    Expr equal_or_nan = select(strict_eq(a, b), from_bits(float_bits(a) | float_bits(b)), strict_add(a, b));
    return select(strict_lt(b, a), b, select(strict_lt(a, b), a, equal_or_nan));
}

Expr abs(const Expr &x) { return from_bits(magnitude_bits(x)); }

Expr sign(const Expr &x) {
    Expr zero = constant_like(x, 0), one = constant_like(x, 1);
    return select(strict_lt(zero, x), one, strict_lt(x, zero), constant_like(x, -1), x);
}

Expr floor(const Expr &x) { return Halide::floor(strict(x)); }

Expr ceil(const Expr &x) { return Halide::ceil(strict(x)); }

Expr round(const Expr &x) { return Halide::round(strict(x)); }

Expr is_finite(const Expr &x) {
    Expr bits = magnitude_bits(x);
    return bits < word(bits, x.type().bits() == 32 ? 0x7f800000u : 0x7ff0000000000000u);
}

// Powers above 2 are computed in f64 and rounded once.
Expr integer_pow(const Expr &x, int power) {
    if (power == 0) return constant_like(x, 1);
    if (power == 1) return x;
    if (power == 2) return strict_mul(x, x);
    Expr product = power_by_squaring(cast<double>(x), static_cast<unsigned>(std::abs(power)));
    return cast(x.type(), power > 0 ? product : strict_div(constant_like(product, 1), product));
}

Expr pow2_down(const Expr &x) { return round_to_power(x, 0); }

Expr pow2_up(const Expr &x) { return round_to_power(x, 0x000fffffffffffffu); }

Expr pow2_nearest(const Expr &x) { return round_to_power(x, 0x0008000000000000u); }

// One binary digit a step would take 277 steps. A quotient below 2^28 times a 24-bit divisor is exact in f64, so ten steps suffice.
Expr rem(const Expr &x, const Expr &y) {
    constexpr int digit_bits = 28, digits = 10;
    Expr rest = cast<double>(math::abs(x)), divisor = cast<double>(math::abs(y));
    for (int digit = digits - 1; digit >= 0; digit--) {
        Expr unit = strict_mul(divisor, constant_like(divisor, std::ldexp(1, digit * digit_bits)));
        Expr quotient = Halide::trunc(strict_div(rest, unit));
        rest = strict_sub(rest, strict_mul(quotient, unit));
        // The quotient may have been rounded up.
        rest = select(strict_lt(rest, constant_like(rest, 0)), strict_add(rest, unit), rest);
    }
    Expr has_value = math::is_finite(x) && !strict_eq(y, constant_like(y, 0)) && !scalide::is_nan(y);
    Expr result = select(math::is_finite(y), with_sign_of(cast<float>(rest), x), x);
    return select(has_value, result, float32(0x7fc00000u));
}

// Adjacent floats of one sign are adjacent as integers.
Expr nextafter(const Expr &x, const Expr &y) {
    Expr zero = constant_like(x, 0), is_up = strict_lt(x, y), is_positive = strict_lt(zero, x);
    Expr step = select(is_up == is_positive, bits32(1), bits32(0xffffffffu));
    Expr beside_zero = from_bits(sign_bit(y) | bits32(1));
    Expr result = select(strict_eq(x, zero), beside_zero, from_bits(float_bits(x) + step));
    result = select(strict_eq(x, y), y, result);
    return select(scalide::is_nan(x) || scalide::is_nan(y), float32(0x7fc00000u), result);
}

// Follows XLA's steps on the bits of an f32: round the mantissa, then replace exponents that the format lacks.
Expr reduce_precision(const Expr &x, int exponent_bits, int mantissa_bits) {
    internal_check(exponent_bits >= 1 && exponent_bits <= 8 && mantissa_bits >= 0 && mantissa_bits <= 23,
                   "reduce_precision: widths beyond f32");
    Expr magnitude = magnitude_bits(x);
    if (int dropped = 23 - mantissa_bits; dropped > 0) {
        Expr odd = (magnitude >> dropped) & bits32(1);
        magnitude = (magnitude + bits32(((1u << dropped) >> 1) - 1) + odd) & bits32(~((1u << dropped) - 1));
    }
    if (exponent_bits < 8) {
        uint32_t bias = (1u << (exponent_bits - 1)) - 1;
        Expr too_large = magnitude >= bits32((127 + bias + 1) << 23), too_small = magnitude < bits32((127 - bias + 1) << 23);
        magnitude = select(too_large, bits32(0x7f800000u), too_small, bits32(0), magnitude);
    }
    magnitude = select(scalide::is_nan(x), magnitude_bits(x), magnitude);
    return strict_mul(from_bits(magnitude), unit_with_sign(sign_bit(x)));
}

} // namespace scalide::math

namespace scalide {

namespace {

Halide::Expr reduced(const ElementwiseCall &call) {
    require_f32(call.value(0));
    return math::reduce_precision(call.value(0), integer_attribute(call, "exponent_bits"), integer_attribute(call, "mantissa_bits"));
}

} // namespace

ElementwiseRows rounding_rows() {
    static constexpr ElementwiseLowering rows[] = {
        {"sqrt", one<math::sqrt>},           {"rsqrt", one<math::rsqrt>},        {"floor", one<whole<math::floor>>},
        {"ceil", one<whole<math::ceil>>},    {"round", one<whole<math::round>>}, {"nextafter", f32_two<math::nextafter>},
        {"pow2_down", one<math::pow2_down>}, {"pow2_up", one<math::pow2_up>},    {"pow2_nearest", one<math::pow2_nearest>},
        {"reduce_precision", reduced},
    };
    return rows;
}

} // namespace scalide
