#include "expr/special_functions.h"
#include <cmath>
#include <limits>
#include <numbers>

namespace scalide {

namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
constexpr double pi = std::numbers::pi, epsilon = 1e-17, tiny = 1e-300;
/// Series and fractions end when their terms become negligible. This limit is for arguments for which that takes too long.
constexpr int most_steps = 200000;

bool is_whole(double x) { return std::floor(x) == x; }

bool is_even(double x) { return is_whole(x / 2); }

/// Returns erf(y) - x for y >= 0. Uses erfc where erf(y) is close to 1.
double erf_gap(double y, double x) { return x < 0.5 ? std::erf(y) - x : (1 - x) - std::erfc(y); }

/// Returns the lower tail for x < a + 1.
double lower_series(double a, double x) {
    double term = 1 / a, sum = term;
    for (int n = 1; n < most_steps && term > sum * epsilon; n++) {
        term *= x / (a + n);
        sum += term;
    }
    return sum;
}

double nonzero(double x) { return std::fabs(x) < tiny ? tiny : x; }

/// One step of the continued fraction b0 + a1 / (b1 + a2 / (b2 + ...)) in Lentz's method. step(n) returns a and b of step n.
struct Step {
    double a, b;
};

template<typename Steps>
double continued_fraction(double b0, Steps step) {
    double value = nonzero(b0), c = value, d = 0;
    for (int n = 1; n < most_steps; n++) {
        const Step at = step(n);
        d = 1 / nonzero(at.b + at.a * d);
        c = nonzero(at.b + at.a / c);
        value *= c * d;
        if (std::fabs(c * d - 1) < 1e-16) break;
    }
    return value;
}

/// P and Q for positive finite a and x.
struct Tails {
    double lower, upper;
};

Tails incomplete_gamma(double a, double x) {
    const double factor = std::exp(a * std::log(x) - x - std::lgamma(a));
    if (x < a + 1) {
        const double lower = factor * lower_series(a, x);
        return {lower, 1 - lower};
    }
    const double upper = factor / continued_fraction(x + 1 - a, [&](int n) { return Step{-n * (n - a), x + 2 * n + 1 - a}; });
    return {1 - upper, upper};
}

/// Returns XLA's values where a or x is 0, infinite or negative.
double igamma_edge(double a, double x) {
    if (std::isnan(a) || std::isnan(x) || a < 0 || x < 0) return not_a_number;
    if (std::isinf(x)) return 1;
    if (x == 0) return a == 0 ? not_a_number : 0;
    return std::isinf(a) ? not_a_number : 1;
}

bool is_inside(double x) { return x > 0 && std::isfinite(x); }

/// DLMF 8.17.22, for x <= (a + 1) / (a + b + 2).
double beta_fraction(double a, double b, double x) {
    const double fraction = continued_fraction(1, [&](int n) {
        const int m = n / 2;
        const double even = a + 2 * m;
        return Step{n % 2 == 0 ? m * (b - m) * x / ((even - 1) * even) : -(a + m) * (a + b + m) * x / (even * (even + 1)), 1};
    });
    return 1 / fraction;
}

/// Returns XLA's values where a, b or x is at an end of its range.
double beta_edge(double a, double b, double x) {
    const bool all_left = a == 0 || std::isinf(b), all_right = b == 0 || std::isinf(a);
    const bool has_value = a >= 0 && b >= 0 && x >= 0 && x <= 1 && !(all_left && all_right);
    if (!has_value) return not_a_number;
    if (x == 0 || x == 1) return x;
    return all_left ? 1 : 0;
}

/// The power series of I_order(x) e^-x. All its terms are positive.
double bessel_series(int order, double x) {
    double term = (order == 0 ? 1 : x / 2) * std::exp(-x), sum = term;
    for (int k = 1; k < most_steps && term > sum * epsilon; k++) {
        term *= x / 2 / k * (x / 2) / (k + order);
        sum += term;
    }
    return sum;
}

/// Hankel's expansion of I_order(x) e^-x for large x.
double bessel_asymptotic(int order, double x) {
    double term = 1, sum = 1;
    for (int k = 1; k < 25; k++) {
        term *= -(4.0 * order - (2.0 * k - 1) * (2.0 * k - 1)) / (8 * k * x);
        sum += term;
    }
    return sum / std::sqrt(2 * pi * x);
}

double bessel(int order, double x) {
    if (std::isinf(x)) return 0;
    return x < 30 ? bessel_series(order, x) : bessel_asymptotic(order, x);
}

} // namespace

double erf_inv(double x) {
    const double side = std::fabs(x);
    if (!(side < 1)) return side == 1 ? std::copysign(infinity, x) : not_a_number;
    // Winitzki's approximation, then Newton's method.
    const double log_term = std::log1p(-side * side), half = 2 / (pi * 0.147) + log_term / 2;
    double y = std::sqrt(std::sqrt(half * half - log_term / 0.147) - half);
    for (int i = 0; i < 6; i++) y -= erf_gap(y, side) * std::sqrt(pi) / 2 * std::exp(y * y);
    return std::copysign(side < 1e-8 ? side * std::sqrt(pi) / 2 : y, x);
}

double digamma(double x) {
    if (std::isnan(x) || x == infinity) return x;
    if (x <= 0 && is_whole(x)) return not_a_number;
    if (x < 0) return digamma(1 - x) - pi / std::tan(pi * (x - std::nearbyint(x)));
    double result = 0;
    for (; x < 12; x += 1) result -= 1 / x;
    const double w = 1 / (x * x);
    const double series = w * (1.0 / 12 - w * (1.0 / 120 - w * (1.0 / 252 - w * (1.0 / 240 - w * (1.0 / 132 - w * 691.0 / 32760)))));
    return result + std::log(x) - 0.5 / x - series;
}

// Sums at least the terms up to 9 and uses the Euler-Maclaurin formula for the others (Cephes).
double zeta(double x, double q) {
    static constexpr double divisors[] = {
        12,
        -720,
        30240,
        -1209600,
        47900160,
        -1.8924375803183791606e9,
        7.47242496e10,
        -2.950130727918164224e12,
        1.1646782814350067249e14,
        -4.5979787224074726105e15,
        1.8152105401943546773e17,
        -7.1661652561756670113e18,
    };
    if (std::isnan(x) || std::isnan(q) || x < 1) return not_a_number;
    if (x == 1) return infinity;
    if (q <= 0 && is_whole(q)) return is_even(x) ? infinity : not_a_number;
    if (!std::isfinite(x) || !std::isfinite(q) || (q < 0 && !is_whole(x))) return not_a_number;
    double at = q, power = std::pow(q, -x), sum = power;
    for (int i = 1; i < 10 || at <= 9; i++) {
        at += 1;
        power = std::pow(at, -x);
        sum += power;
    }
    if (power == 0) return sum;
    sum += power * (at / (x - 1) - 0.5);
    double factor = x / at;
    for (int k = 0; k < 12; k++) {
        const double term = power * factor / divisors[k];
        sum += term;
        if (std::fabs(term) < std::fabs(sum) * epsilon) break;
        factor *= (x + 2 * k + 1) / at * ((x + 2 * k + 2) / at);
    }
    return sum;
}

double igamma(double a, double x) { return is_inside(a) && is_inside(x) ? incomplete_gamma(a, x).lower : igamma_edge(a, x); }

double igammac(double a, double x) { return is_inside(a) && is_inside(x) ? incomplete_gamma(a, x).upper : 1 - igamma_edge(a, x); }

double regularized_incomplete_beta(double a, double b, double x) {
    if (!is_inside(a) || !is_inside(b) || !(x > 0 && x < 1)) return beta_edge(a, b, x);
    if (x > (a + 1) / (a + b + 2)) return 1 - regularized_incomplete_beta(b, a, 1 - x);
    const double log_factor = a * std::log(x) + b * std::log1p(-x) + std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b);
    return std::exp(log_factor) * beta_fraction(a, b, x) / a;
}

double bessel_i0e(double x) { return std::isnan(x) ? x : bessel(0, std::fabs(x)); }

double bessel_i1e(double x) { return std::isnan(x) ? x : std::copysign(bessel(1, std::fabs(x)), x); }

} // namespace scalide
