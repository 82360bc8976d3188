#include "lower/math.h"
#include "lower/math_f64.h"
#include "lower/strict.h"

namespace scalide::math {

using Halide::cast;
using Halide::Expr;
using Halide::select;

namespace {

constexpr double ln2 = 0.6931471805599453;
constexpr uint32_t infinity_bits = 0x7f800000u, nan_bits = 0x7fc00000u;

Expr word64(uint64_t value) { return Halide::Internal::make_const(Halide::UInt(64), value); }

} // namespace

// x = 2^k m, sqrt(1/2) <= m < sqrt(2), log m = 2 atanh(s), s = (m - 1) / (m + 1).
Expr log_f64(const Expr &x) {
    Expr sqrt_half = word64(0x3fe6a09e667f3bcdu), bits = float_bits(x);
    Expr above = Halide::reinterpret(Halide::Int(64), bits - sqrt_half);
    Expr k = above >> 52;
    Expr m = from_bits(bits - (Halide::reinterpret(Halide::UInt(64), k) << 52));
    Expr s = strict_div(strict_sub(m, Expr(1.0)), strict_add(m, Expr(1.0))), z = strict_mul(s, s);
    Expr series = polynomial(z, {0.1960925250590459, 0.22174173311388127, 0.28572167898740928, 0.39999994875720716, 0.6666666667963,
                                 1.9999999999999469}); // 2^-45
    return strict_add(strict_mul(cast<double>(cast<int32_t>(k)), Expr(ln2)), strict_mul(s, series));
}

Expr log(const Expr &x) {
    Expr bits = float_bits(x);
    Expr result = float_bits(cast<float>(log_f64(cast<double>(x))));
    result = select(bits > bits32(infinity_bits), bits32(nan_bits), result); // negative or NaN
    result = select(bits == bits32(infinity_bits), bits, result);
    return from_bits(select(magnitude_bits(x) == bits32(0), bits32(0xff800000u), result));
}

// 1 + x is exact enough in f64 from 2^-25 on; below, log(1 + x) is x to within x / 2.
Expr log1p(const Expr &x) {
    Expr bits = float_bits(x);
    Expr result = cast<float>(log_f64(strict_add(Expr(1.0), cast<double>(x))));
    result = select(magnitude_bits(x) < bits32(0x33000000u) || bits == bits32(infinity_bits), x, result);
    result = select(bits == bits32(0xbf800000u), float32(0xff800000u), result); // -1
    return select(strict_lt(x, Expr(-1.0f)) || scalide::is_nan(x), float32(nan_bits), result);
}

// |x|^y = e^(y log |x|), its sign that of x for odd y; the rules for special values are C's (IEC 60559, F.10.4.4).
Expr pow(const Expr &x, const Expr &y) {
    Expr zero = Expr(0.0f), one = Expr(1.0f), magnitude = math::abs(x);
    Expr log_x = log_f64(cast<double>(magnitude));
    log_x = select(strict_eq(magnitude, zero), Expr(-1e200), !math::is_finite(x), Expr(1e200), log_x);
    Expr exponent = strict_mul(log_x, cast<double>(Halide::clamp(y, -3.4e38f, 3.4e38f)));
    Expr power = cast<float>(exp_f64(Halide::clamp(exponent, Expr(-150.0), Expr(150.0))));
    Expr is_whole = strict_eq(Halide::trunc(strict(y)), y);
    Expr half = strict_mul(y, Expr(0.5f));
    Expr is_odd = is_whole && !strict_eq(Halide::trunc(half), half);
    Expr is_negative = sign_bit(x) != bits32(0);
    Expr result = select(is_negative && is_odd, from_bits(float_bits(power) ^ bits32(0x80000000u)), power);
    Expr has_no_value = is_negative && !is_whole && math::is_finite(x) && !strict_eq(x, zero);
    result = select(has_no_value || scalide::is_nan(x) || scalide::is_nan(y), float32(nan_bits), result);
    return select(strict_eq(x, one) || strict_eq(y, zero), one, result);
}

// e^(log |x| / 3)
Expr cbrt(const Expr &x) {
    Expr third = strict_mul(log_f64(cast<double>(math::abs(x))), Expr(1.0 / 3));
    Expr result = cast(x.type(), exp_f64(third));
    return select(strict_eq(x, constant_like(x, 0)) || !math::is_finite(x), x, with_sign_of(result, x));
}

} // namespace scalide::math
