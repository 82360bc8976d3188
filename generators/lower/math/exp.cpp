#include "lower/halide/strict.h"
#include "lower/math/elementwise_rows.h"
#include "lower/math/f64.h"
#include "lower/math/math.h"

// Functions based on 2^n * e^r with |r| <= ln2 / 2. The polynomials are Chebyshev interpolations of (e^r - 1 - r) / r^2 on that interval.
// Their error is at the end of the line.

namespace scalide::math {

using Halide::cast;
using Halide::clamp;
using Halide::Expr;
using Halide::select;

namespace {

constexpr double log2_e = 1.4426950408889634, ln2 = 0.6931471805599453;
// Adding this constant rounds x to an integer, which is then in the low bits: 1.5 * 2^23 and 1.5 * 2^52.
constexpr double round_f32 = 12582912.0, round_f64 = 6755399441055744.0;

// (1 + r + r^2 q(r)) * 2^n for f32. `sum` is x * log2(e) + round_f32, and n its integer part. n ranges from -150 to 128, so 2^n is split
// into two factors.
Expr scale_f32(const Expr &r, const Expr &sum) {
    Expr q = polynomial(r, {1.3926224919030327e-3, 8.3632121398537582e-3, 4.1666554368837043e-2, 1.6666576790880373e-1, 0.5}); // 2^-22.8
    Expr power = strict_add(Expr(1.0f), r * r * q + r);
    Expr n = Halide::reinterpret<int32_t>(sum) - Halide::reinterpret<int32_t>(Expr(static_cast<float>(round_f32)));
    Expr half = n >> 1;
    auto two_to = [](const Expr &k) { return Halide::reinterpret<float>((k + 127) << 23); };
    return strict_mul(strict_mul(power, two_to(half)), two_to(n - half));
}

// e^x = scale * (1 + minus_one)
struct Power {
    Expr scale, minus_one;
};

Power split_f64(const Expr &x) {
    Expr magic = Expr(round_f64), sum = strict_add(strict_mul(x, Expr(log2_e)), magic);
    Expr r = strict_sub(x, strict_mul(strict_sub(sum, magic), Expr(ln2)));
    Expr q = polynomial(r, {2.485965410408397e-05, 1.9899349872955336e-04, 1.3888853958415327e-03, 8.3332983925183809e-03,
                            4.1666666719186364e-02, 1.6666666719203095e-01, 0.5}); // 2^-34
    Expr scale = from_bits((float_bits(sum) + Halide::Internal::make_const(Halide::UInt(64), 1023)) << 52);
    return {scale, r * r * q + r};
}

Expr keep_nan(const Expr &x, const Expr &result) { return select(scalide::is_nan(x), x, result); }

} // namespace

Expr exp_f64(const Expr &x) {
    Power power = split_f64(x);
    return strict_mul(power.scale, strict_add(Expr(1.0), power.minus_one));
}

Expr expm1_f64(const Expr &x) {
    Power power = split_f64(x);
    return strict_add(strict_mul(power.scale, power.minus_one), strict_sub(power.scale, Expr(1.0)));
}

// n * ln2 in two parts. The first factor has 10 bits, so its product with n is exact.
Expr exp(const Expr &x) {
    Expr bounded = clamp(x, -104.0f, 89.0f), magic = Expr(static_cast<float>(round_f32));
    Expr sum = strict_add(strict_mul(bounded, Expr(static_cast<float>(log2_e))), magic), n = strict_sub(sum, magic);
    Expr r = strict_sub(strict_sub(bounded, strict_mul(n, Expr(0.693359375f))), strict_mul(n, Expr(-2.12194440e-4f)));
    return keep_nan(x, scale_f32(r, sum));
}

Expr exp2(const Expr &x) {
    Expr bounded = clamp(x, -151.0f, 128.5f), magic = Expr(static_cast<float>(round_f32));
    Expr sum = strict_add(bounded, magic);
    Expr r = strict_mul(strict_sub(bounded, strict_sub(sum, magic)), Expr(static_cast<float>(ln2)));
    return keep_nan(x, scale_f32(r, sum));
}

Expr expm1(const Expr &x) {
    Expr result = cast<float>(expm1_f64(cast<double>(clamp(x, -104.0f, 89.0f))));
    return keep_nan(x, with_sign_of(result, x));
}

// With e = e^-|x| and d = 1 + e, the quotient is 1 / d or e / d. A correction removes the rounding error of d, `lost`: it is quotient / d *
// lost. 1 / d is the quotient or 1 - quotient.
Expr logistic(const Expr &x) {
    Expr e = math::exp(from_bits(float_bits(x) | bits32(0x80000000u))), one = Expr(1.0f), d = strict_add(one, e);
    Expr is_positive = sign_bit(x) == bits32(0), quotient = strict_div(select(is_positive, one, e), d);
    Expr inverse = select(is_positive, quotient, strict_sub(one, quotient)), lost = strict_sub(e, strict_sub(d, one));
    return strict_sub(quotient, strict_mul(strict_mul(quotient, inverse), lost));
}

// tanh |x| = (e^2|x| - 1) / (e^2|x| + 1)
Expr tanh(const Expr &x) {
    Expr e = expm1_f64(cast<double>(Halide::min(math::abs(x), 10.0f)) * Expr(2.0));
    Expr result = cast<float>(strict_div(e, strict_add(e, Expr(2.0))));
    return keep_nan(x, with_sign_of(result, x));
}

} // namespace scalide::math

namespace scalide {

ElementwiseRows exponential_rows() {
    static constexpr ElementwiseLowering rows[] = {{"exp", f32_one<math::exp>},
                                                   {"exp2", f32_one<math::exp2>},
                                                   {"expm1", f32_one<math::expm1>},
                                                   {"logistic", f32_one<math::logistic>},
                                                   {"tanh", f32_one<math::tanh>}};
    return rows;
}

} // namespace scalide
