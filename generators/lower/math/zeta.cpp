#include "lower/halide/strict.h"
#include "lower/math/elementwise_rows.h"
#include "lower/math/f64.h"
#include "lower/math/math.h"

#include <iterator>

namespace scalide::math {

using Halide::cast;
using Halide::Expr;
using Halide::select;

namespace {

// (2 k)! / B(2 k) for k = 1, 2 ...: the divisors of the Euler-Maclaurin formula.
constexpr double divisors[] = {12, -720, 30240, -1209600, 47900160, -1892437580.3183792, 74724249600, -2950130727918.1642};
constexpr int terms = 10;

Expr is_whole(const Expr &x) { return strict_eq(math::floor(x), x); }

Expr is_even(const Expr &x) { return is_whole(strict_mul(x, constant_like(x, 0.5))); }

// b|^-x, limited to the range of f64.
Expr inverse_power(const Expr &b, const Expr &x) {
    Expr exponent = strict_mul(x, log_f64(from_bits(magnitude_bits(b))));
    return exp_f64(-Halide::clamp(exponent, Expr(-700.0), Expr(700.0)));
}

// b^-x. For b < 0 it exists only if x is an integer.
Expr signed_inverse_power(const Expr &b, const Expr &x) {
    Expr power = inverse_power(b, x);
    return select(strict_lt(b, Expr(0.0)) && !is_even(x), strict_sub(Expr(0.0), power), power);
}

// The Euler-Maclaurin remainder after the sum of (q + i)^-x up to w = q + n. That sum counts half of its last term too much.
Expr remainder(const Expr &w, const Expr &x) {
    Expr bounded = Halide::min(x, Expr(1000.0)), inverse = strict_div(Expr(1.0), w);
    Expr series = Expr(0.0);
    for (int k = std::size(divisors) - 1; k >= 0; k--) {
        Expr term = strict_add(series, Expr(1 / divisors[k]));
        Expr factor = strict_mul(strict_add(bounded, Expr(2.0 * k)), inverse);
        if (k > 0) factor = strict_mul(factor, strict_mul(strict_add(bounded, Expr(2.0 * k - 1)), inverse));
        series = strict_mul(factor, term);
    }
    return strict_add(strict_sub(strict_div(w, strict_sub(x, Expr(1.0))), Expr(0.5)), series);
}

} // namespace

// The sum of (q + i)^-x over i = 0, 1 ...: ten terms, and the Euler-Maclaurin formula for the others.
Expr zeta(const Expr &x, const Expr &q) {
    Expr s = cast<double>(x), base = cast<double>(q), sum = Expr(0.0), power;
    for (int i = 0; i < terms; i++) {
        power = signed_inverse_power(strict_add(base, Expr(double(i))), s);
        sum = strict_add(sum, power);
    }
    sum = strict_add(sum, strict_mul(power, remainder(strict_add(base, Expr(terms - 1.0)), s)));
    Expr zero = Expr(0.0f), one = Expr(1.0f), no_value = float32(0x7fc00000u), infinity = float32(0x7f800000u);
    Expr result = select(math::is_finite(x) && math::is_finite(q), cast<float>(sum), no_value);
    result = select(strict_lt(q, zero) && !is_whole(x), no_value, result);
    result = select(strict_le(q, zero) && is_whole(q), select(is_even(x), infinity, no_value), result);
    return select(scalide::is_nan(x) || scalide::is_nan(q) || strict_lt(x, one), no_value, select(strict_eq(x, one), infinity, result));
}

} // namespace scalide::math

namespace scalide {

ElementwiseRows zeta_rows() {
    static constexpr ElementwiseLowering rows[] = {{"zeta", f32_two<math::zeta>}};
    return rows;
}

} // namespace scalide
