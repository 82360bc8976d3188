#include "lower/halide/strict.h"
#include "lower/math/elementwise_rows.h"
#include "lower/math/f64.h"
#include "lower/math/math.h"

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

namespace {

// The parts of log(u) for a normal f32 u > 0, without its exponent: u = 2^k m and f = m - 1. log(m) = f - half_square + correction.
struct LogParts {
    Expr k, f, half_square, correction;
};

LogParts log_parts(const Expr &u) {
    Expr bits = float_bits(u), above = Halide::reinterpret<int32_t>(bits - bits32(0x3f3504f3u)), k = above >> 23; // sqrt(1/2)
    Expr f = strict_sub(from_bits(bits - (Halide::reinterpret<uint32_t>(k) << 23)), Expr(1.0f));
    Expr s = strict_div(f, strict_add(f, Expr(2.0f))), z = strict_mul(s, s);
    Expr series = strict_mul(z, polynomial(z, {0.23331040834029354, 0.2855079973020907, 0.40000122025712326, 0.6666666655426973})); // 2^-35
    Expr half_square = strict_mul(strict_mul(Expr(0.5f), f), f);
    return {cast<float>(k), f, half_square, strict_mul(s, strict_add(half_square, series))};
}

// log(u) + rest in f32, for a normal u > 0 and a rest far below u. It works as log_f64, but adds k ln2 + f - f^2 / 2 + ... from the
// smallest part to the largest. ln2 is split into two parts; the first has 16 bits, so its product with k is exact. The error is 0.9 ulp;
// it takes half the time of f64.
Expr log_f32(const Expr &u, const Expr &exponent, const Expr &rest) {
    const LogParts of = log_parts(u);
    Expr n = strict_add(of.k, exponent);
    Expr small = strict_add(of.correction, strict_add(strict_mul(n, Expr(1.4286068203094173e-06f)), rest));
    return strict_add(strict_add(strict_sub(small, of.half_square), of.f), strict_mul(n, Expr(0.693145751953125f)));
}

// log(u) / ln2 in f32, for a normal u > 0. f - f^2 / 2 is split into `high`, which has 12 bits, and a rest; 1 / ln2 is split likewise. The
// product of the first parts is exact, so k and this product lose nothing. A power of two has f = 0, and its logarithm is exact.
Expr log2_f32(const Expr &u, const Expr &exponent) {
    const LogParts of = log_parts(u);
    Expr high = from_bits(float_bits(strict_sub(of.f, of.half_square)) & bits32(0xfffff000u));
    Expr low = strict_add(strict_sub(strict_sub(of.f, high), of.half_square), of.correction);
    Expr first = Expr(1.44287109375f), second = Expr(-0.00017605285393074155f); // 1 / ln2 = first + second, relative error 2^-36
    Expr small = strict_add(strict_add(strict_mul(low, second), strict_mul(high, second)), strict_mul(low, first));
    return strict_add(strict_add(small, strict_mul(high, first)), strict_add(of.k, exponent));
}

// A logarithm of any f32 from its function for normal u > 0, which gets u and the exponent to add. Subnormal x are multiplied by 2^25.
template<typename Function>
Expr for_all(const Expr &x, Function &&of_normal) {
    Expr bits = float_bits(x), is_subnormal = bits < bits32(0x00800000u);
    Expr result = of_normal(select(is_subnormal, strict_mul(x, Expr(0x1p25f)), x), select(is_subnormal, Expr(-25.0f), Expr(0.0f)));
    result = select(bits >= bits32(infinity_bits), select(bits == bits32(infinity_bits), x, float32(nan_bits)), result); // negative or NaN
    return select(magnitude_bits(x) == bits32(0), float32(0xff800000u), result);
}

} // namespace

Expr log(const Expr &x) {
    return for_all(x, [](const Expr &u, const Expr &exponent) { return log_f32(u, exponent, Expr(0.0f)); });
}

Expr log2(const Expr &x) { return for_all(x, log2_f32); }

// u = 1 + x, rounded; the rounding error divided by u is added to log u. Below 2^-25, log(1 + x) is x, up to a relative error of x / 2.
Expr log1p(const Expr &x) {
    Expr bits = float_bits(x), one = Expr(1.0f), u = strict_add(one, x);
    Expr lost = select(strict_lt(x, one), strict_sub(x, strict_sub(u, one)), strict_sub(one, strict_sub(u, x)));
    Expr result = log_f32(u, Expr(0.0f), strict_div(lost, u));
    result = select(magnitude_bits(x) < bits32(0x33000000u) || bits == bits32(infinity_bits), x, result);
    result = select(bits == bits32(0xbf800000u), float32(0xff800000u), result); // -1
    return select(strict_lt(x, Expr(-1.0f)) || scalide::is_nan(x), float32(nan_bits), result);
}

// x|^y = e^(y log |x|). For odd y, the sign is that of x. Special values follow C (IEC 60559, F.10.4.4).
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

namespace {

// x y^2 with y = x^(-1/3). A third of the bits as an integer gives y to 4 %. Each step y += y (1 - x y^3) / 3 squares the error. The last
// step is in f64.
Expr cbrt_f32(const Expr &x) {
    Expr is_subnormal = magnitude_bits(x) < bits32(0x00800000u), magnitude = math::abs(x);
    Expr scaled = select(is_subnormal, strict_mul(magnitude, Expr(0x1p24f)), magnitude);
    Expr third = cast(Halide::UInt(32), strict_mul(cast<float>(Halide::reinterpret<int32_t>(float_bits(scaled))), Expr(1.0f / 3)));
    Expr y = from_bits(bits32(0x54a2fa8cu) - third);
    for (int step = 0; step < 2; step++) {
        Expr error = strict_sub(Expr(1.0f), strict_mul(strict_mul(strict_mul(scaled, y), y), y));
        y = strict_add(y, strict_mul(strict_mul(y, error), Expr(1.0f / 3)));
    }
    Expr wide = cast<double>(scaled), root = cast<double>(y), product = strict_mul(strict_mul(wide, root), root);
    Expr error = strict_sub(Expr(1.0), strict_mul(product, root)), factor = strict_add(Expr(1.0), strict_mul(error, Expr(2.0 / 3)));
    return strict_mul(cast<float>(strict_mul(product, factor)), select(is_subnormal, Expr(0x1p-8f), Expr(1.0f)));
}

} // namespace

// For f64, which is used for scales: e^(log |x| / 3).
Expr cbrt(const Expr &x) {
    Expr result = x.type().bits() == 32 ? cbrt_f32(x) : exp_f64(strict_mul(log_f64(math::abs(x)), Expr(1.0 / 3)));
    return select(strict_eq(x, constant_like(x, 0)) || !math::is_finite(x), x, with_sign_of(result, x));
}

} // namespace scalide::math

namespace scalide {

ElementwiseRows logarithm_rows() {
    static constexpr ElementwiseLowering rows[] = {
        {"log", f32_one<math::log>}, {"log2", f32_one<math::log2>}, {"log1p", f32_one<math::log1p>},
        {"pow", f32_two<math::pow>}, {"cbrt", one<math::cbrt>},
    };
    return rows;
}

} // namespace scalide
