#include "lower/halide/strict.h"
#include "lower/math/elementwise_rows.h"
#include "lower/math/f64.h"
#include "lower/math/math.h"

// Incomplete gamma and beta functions in f64. Every element takes the number of steps that the slowest element needs.

namespace scalide::math {

using Halide::cast;
using Halide::Expr;
using Halide::select;

namespace {

constexpr double two_pi = 6.283185307179586;

Expr complement(const Expr &p) { return strict_sub(Expr(1.0), p); }

Expr held_exp(const Expr &x) { return exp_f64(Halide::clamp(x, Expr(-700.0), Expr(700.0))); }

// P and Q with P + Q = 1. The smaller one is computed directly, not as a difference.
struct Tails {
    Expr lower, upper;
};

Tails choose(const Expr &condition, const Tails &a, const Tails &b) {
    return {select(condition, a.lower, b.lower), select(condition, a.upper, b.upper)};
}

// 1 + x / (a + 1) (1 + x / (a + 2) (1 + ...)), for x < a + 1 and a <= 20 or x <= 0.6 a; 2^-35
Expr lower_series(const Expr &a, const Expr &x) {
    Expr sum = Expr(1.0);
    for (int k = 48; k >= 1; k--) sum = strict_add(Expr(1.0), strict_mul(strict_div(x, strict_add(a, Expr(double(k)))), sum));
    return sum;
}

// 1 / (x + 1 - a - 1 (1 - a) / (x + 3 - a - 2 (2 - a) / ...)), for x >= a + 1; 2^-29
Expr upper_fraction(const Expr &a, const Expr &x) {
    Expr rest = Expr(0.0), gap = strict_sub(x, a);
    for (int k = 32; k >= 1; k--) {
        Expr below = strict_sub(strict_add(gap, Expr(2.0 * k + 1)), rest);
        rest = strict_div(strict_mul(strict_sub(Expr(double(k)), a), Expr(double(k))), below);
    }
    return strict_div(Expr(1.0), strict_sub(strict_add(gap, Expr(1.0)), rest));
}

Tails by_steps(const Expr &a, const Expr &x) {
    Expr logarithm = strict_sub(strict_sub(strict_mul(a, log_f64(x)), x), lgamma_f64(a));
    Expr factor = held_exp(logarithm);
    Expr lower = strict_mul(strict_div(factor, a), lower_series(a, x)), upper = strict_mul(factor, upper_fraction(a, x));
    return choose(strict_lt(x, strict_add(a, Expr(1.0))), {lower, complement(lower)}, {complement(upper), upper});
}

// Temme's uniform expansion (1979), for a > 20 and |mu| < 0.4. It is the error function of a normal distribution that approximates P, plus
// a correction: a polynomial in eta and 1 / a; 2^-29.
Tails by_expansion(const Expr &a, const Expr &x, const Expr &mu) {
    Expr half_square = Halide::max(strict_sub(mu, log_f64(strict_div(x, a))), Expr(0.0));
    Expr size = math::sqrt(strict_mul(Expr(2.0), half_square)), eta = select(strict_lt(mu, Expr(0.0)), strict_sub(Expr(0.0), size), size);
    Expr c0 = polynomial(eta, {8.296711340953086e-7, -1.85406221071516e-6, -2.1854485106799922e-6, 3.9192631785224378e-5,
                               -1.7875514403292181e-4, 3.527336860670194e-4, 1.1574074074074074e-3, -1.4814814814814815e-2,
                               8.3333333333333333e-2, -3.3333333333333333e-1});
    Expr c1 = polynomial(eta, {-1.8098550334489978e-5, -4.0187757201646091e-7, 2.0576131687242798e-4, -9.9022633744855967e-4,
                               2.6455026455026455e-3, -3.4722222222222222e-3, -1.8518518518518519e-3});
    Expr c2 = polynomial(
        eta, {-1.0736653226365161e-4, 2.0093878600823045e-6, 7.7160493827160494e-4, -2.6813271604938272e-3, 4.1335978835978836e-3});
    Expr c3 = polynomial(eta, {-4.6918949439525571e-4, 2.2947209362139918e-4, 6.4943415637860082e-4});
    Expr inverse = strict_div(Expr(1.0), a);
    Expr sum = strict_add(c0, strict_mul(inverse, strict_add(c1, strict_mul(inverse, strict_add(c2, strict_mul(inverse, c3))))));
    Expr density =
        strict_mul(held_exp(strict_sub(Expr(0.0), strict_mul(a, half_square))), math::sqrt(strict_mul(inverse, Expr(1 / two_pi))));
    Expr correction = strict_mul(density, sum), at = strict_mul(eta, math::sqrt(strict_mul(a, Expr(0.5))));
    Expr upper = strict_mul(Expr(0.5), erfc_f64(at)), lower = strict_mul(Expr(0.5), erfc_f64(strict_sub(Expr(0.0), at)));
    return {strict_sub(lower, correction), strict_add(upper, correction)};
}

// For positive finite a and x.
Tails incomplete_gamma(const Expr &a, const Expr &x) {
    Expr mu = strict_div(strict_sub(x, a), a);
    Expr is_near = strict_lt(Expr(20.0), a) && strict_lt(from_bits(magnitude_bits(mu)), Expr(0.4));
    return choose(is_near, by_expansion(a, x, mu), by_steps(a, x));
}

// For any f32 a and x, with XLA's edge cases: x = 0 gives P = 0; x = inf and a = 0 give 1; otherwise a = inf and negative arguments give
// NaN.
Tails gamma_tails(const Expr &a, const Expr &x) {
    Expr zero = Expr(0.0f), infinity = float32(0x7f800000u);
    Expr is_regular = strict_lt(zero, a) && strict_lt(zero, x) && math::is_finite(a) && math::is_finite(x);
    Tails regular = incomplete_gamma(cast<double>(select(is_regular, a, Expr(1.0f))), cast<double>(select(is_regular, x, Expr(1.0f))));
    Expr has_value = strict_le(zero, a) && strict_le(zero, x), is_zero = strict_eq(x, zero);
    Expr edge = select(strict_eq(x, infinity), Expr(1.0f), strict_eq(a, infinity) && !is_zero, float32(0x7fc00000u),
                       is_zero && strict_eq(a, zero), float32(0x7fc00000u), select(is_zero, zero, Expr(1.0f)));
    edge = select(has_value, edge, float32(0x7fc00000u));
    return choose(is_regular, {cast<float>(regular.lower), cast<float>(regular.upper)}, {edge, strict_sub(Expr(1.0f), edge)});
}

// The continued fraction of the incomplete beta function (DLMF 8.17.22), evaluated from its 40th pair of steps upwards, for x <= (a + 1) /
// (a + b + 2).
Expr beta_fraction(const Expr &a, const Expr &b, const Expr &x) {
    Expr rest = Expr(1.0), sum = strict_add(a, b);
    for (int m = 40; m >= 1; m--) {
        Expr even = strict_add(a, Expr(2.0 * m)), step = Expr(double(m));
        Expr odd_over = strict_mul(strict_mul(strict_add(a, step), strict_add(sum, step)), x);
        rest = strict_sub(Expr(1.0), strict_div(odd_over, strict_mul(strict_mul(even, strict_add(even, Expr(1.0))), rest)));
        Expr even_over = strict_mul(strict_mul(step, strict_sub(b, step)), x);
        rest = strict_add(Expr(1.0), strict_div(even_over, strict_mul(strict_mul(strict_sub(even, Expr(1.0)), even), rest)));
    }
    Expr first = strict_div(strict_mul(sum, x), strict_mul(strict_add(a, Expr(1.0)), rest));
    return strict_div(Expr(1.0), strict_sub(Expr(1.0), first));
}

// For positive finite a and b, and 0 < x < 1.
Expr incomplete_beta(const Expr &a, const Expr &b, const Expr &x) {
    Expr sum = strict_add(a, b), mean = strict_div(strict_add(a, Expr(1.0)), strict_add(sum, Expr(2.0)));
    Expr is_swapped = strict_lt(mean, x), y = complement(x);
    Expr logarithm = strict_add(strict_mul(a, log_f64(x)), strict_mul(b, log_f64(y)));
    logarithm = strict_add(logarithm, strict_sub(strict_sub(lgamma_f64(sum), lgamma_f64(a)), lgamma_f64(b)));
    Expr near = select(is_swapped, b, a), far = select(is_swapped, a, b);
    Expr result = strict_mul(strict_div(held_exp(logarithm), near), beta_fraction(near, far, select(is_swapped, y, x)));
    return select(is_swapped, complement(result), result);
}

} // namespace

Expr igamma(const Expr &a, const Expr &x) { return gamma_tails(a, x).lower; }

Expr igammac(const Expr &a, const Expr &x) { return gamma_tails(a, x).upper; }

// XLA's edge cases, in this order. x = 0 gives 0 and x = 1 gives 1. Then a = 0 or b = inf gives 1, and b = 0 or a = inf gives 0; if both
// hold, NaN.
Expr regularized_incomplete_beta(const Expr &a, const Expr &b, const Expr &x) {
    Expr zero = Expr(0.0f), one = Expr(1.0f), no_value = float32(0x7fc00000u);
    Expr is_regular =
        strict_lt(zero, a) && strict_lt(zero, b) && math::is_finite(a) && math::is_finite(b) && strict_lt(zero, x) && strict_lt(x, one);
    auto tame = [&](const Expr &value, float otherwise) { return cast<double>(select(is_regular, value, Expr(otherwise))); };
    Expr regular = cast<float>(incomplete_beta(tame(a, 1), tame(b, 1), tame(x, 0.5f)));
    Expr all_left = strict_eq(a, zero) || !math::is_finite(b);
    Expr all_right = strict_eq(b, zero) || !math::is_finite(a);
    Expr edge = select(strict_le(x, zero), zero, select(strict_le(one, x), one, select(all_left, one, zero)));
    Expr has_value = strict_le(zero, a) && strict_le(zero, b) && strict_le(zero, x) && strict_le(x, one) && !(all_left && all_right);
    return select(is_regular, regular, select(has_value, edge, no_value));
}

} // namespace scalide::math

namespace scalide {

ElementwiseRows incomplete_rows() {
    static constexpr ElementwiseLowering rows[] = {{"igamma", f32_two<math::igamma>},
                                                   {"igammac", f32_two<math::igammac>},
                                                   {"regularized_incomplete_beta", f32_three<math::regularized_incomplete_beta>}};
    return rows;
}

} // namespace scalide
