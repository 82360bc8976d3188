#include "lower/halide/strict.h"
#include "lower/math/elementwise_rows.h"
#include "lower/math/f64.h"
#include "lower/math/math.h"

// The logarithm of the gamma function and its derivative, in f64. From 1 to 3, a polynomial is used (Chebyshev interpolation, with the
// zeros divided out). Above 3, it is Stirling's series; below 1, one step of the recurrence; below 0, reflection. The error is 2^-34,
// absolute near the zeros of negative x.

namespace scalide::math {

using Halide::cast;
using Halide::Expr;
using Halide::select;

namespace {

constexpr double pi = 3.141592653589793, half_log_2pi = 0.9189385332046727, psi_zero = 1.4616321449683623;

// The f64 argument of both functions, shifted to at least 1.
struct Argument {
    Expr is_small, central, large; // below 1; minus 2, for at most 3; at least 3
    Expr is_central;
};

Argument argument_of(const Expr &x) {
    Expr is_small = strict_lt(x, Expr(1.0)), shifted = select(is_small, strict_add(x, Expr(1.0)), x);
    return {is_small, strict_sub(Halide::min(shifted, Expr(3.0)), Expr(2.0)), Halide::max(shifted, Expr(3.0)),
            strict_lt(shifted, Expr(3.0))};
}

// sin and cos of pi times the signed distance to the nearest integer.
struct Turn {
    Expr sine, cosine;
};

Turn turn_of(const Expr &x) {
    Expr rest = strict_sub(x, math::round(x)), square = strict_mul(rest, rest);
    Expr sine = polynomial(square, {0.00044750021316399745, -0.0073640120010232245, 0.082144796652079355, -0.59926443421643583,
                                    2.5501640359250874, -5.1677127799884088, 3.1415926535896364}); // 2^-43
    Expr cosine = polynomial(square, {-0.00045687145196367219, 0.0063274187445381425, -0.057248783780616805, 0.31950328398032335,
                                      -0.93480219968264888, 0.99999999999700717}); // 2^-35
    return {strict_mul(rest, sine), strict_mul(cosine, strict_sub(Expr(1.0), strict_mul(Expr(4.0), square)))};
}

// (x - 1)(x - 2) p(x - 2); 2^-35
Expr central_lgamma(const Expr &t) {
    Expr p = polynomial(t, {3.0202120555091084e-07, -6.3119111541331909e-07, -1.1261722836833568e-07, 2.2285454299399324e-07,
                            2.4313349276401965e-06, -5.1453309013125897e-06, 7.792936842244109e-06, -1.6767961686444112e-05,
                            3.834390385832233e-05, -8.3459387461988372e-05, 0.00018251124053457257, -0.00040562127157357358,
                            0.00091538218299588804, -0.0021081417709086572, 0.0049986408625754672, -0.012384191566108562,
                            0.032965000626228903, -0.10031730168485006, 0.4227843350984668});
    return strict_mul(strict_mul(strict_add(t, Expr(1.0)), t), p);
}

// (x - psi_zero) p(x - 2); 2^-34
Expr central_digamma(const Expr &t) {
    Expr p = polynomial(t, {4.8728494475571127e-06, -9.7462959035363754e-06, -3.6516094771281856e-06, 7.3005341690532153e-06,
                            3.1698846207476703e-05, -6.3427043307994263e-05, 7.6311364286296381e-05, -0.00015288653907782811,
                            0.00033948445982607026, -0.00068141620340855661, 0.0013574192036117116, -0.0027381270827209828,
                            0.0055523460976490578, -0.011338616385004188, 0.023447304321373034, -0.049551022366996322, 0.10899991710595819,
                            -0.26073895485958121, 0.78530753860410463});
    return strict_mul(strict_sub(t, Expr(psi_zero - 2)), p);
}

// For a positive f64.
Expr digamma_f64(const Expr &x) {
    Argument at = argument_of(x);
    Expr inverse = strict_div(Expr(1.0), at.large), square = strict_mul(inverse, inverse);
    Expr series = polynomial(square, {0.019775413441580351, -0.014578397959700536, 0.0071672319549410061, -0.0041522841053878807,
                                      0.0039680013627143261, -0.0083333316176911459, 0.083333333331380155}); // 2^-35
    Expr asymptotic = strict_sub(strict_sub(log_f64(at.large), strict_mul(Expr(0.5), inverse)), strict_mul(series, square));
    Expr result = select(at.is_central, central_digamma(at.central), asymptotic);
    return select(at.is_small, strict_sub(result, strict_div(Expr(1.0), x)), result);
}

Expr is_pole(const Expr &x) { return strict_le(x, constant_like(x, 0)) && strict_eq(math::floor(x), x); }

} // namespace

Expr lgamma_f64(const Expr &x) {
    Argument at = argument_of(x);
    Expr logarithm = log_f64(select(at.is_small, x, at.large)), inverse = strict_div(Expr(1.0), at.large);
    Expr series = polynomial(strict_mul(inverse, inverse),
                             {0.0017931928721752139, -0.0014243845441072804, 0.00081026786025691923, -0.00059412352747932856,
                              0.00079363130600317196, -0.0027777776485611865, 0.083333333333211454}); // 2^-40
    Expr stirling = strict_sub(strict_mul(strict_sub(at.large, Expr(0.5)), logarithm), at.large);
    stirling = strict_add(stirling, strict_add(Expr(half_log_2pi), strict_mul(series, inverse)));
    Expr result = select(at.is_central, central_lgamma(at.central), stirling);
    return select(at.is_small, strict_sub(result, logarithm), result);
}

// log|gamma(-y)| = log(pi / (y |sin(pi y)|)) - log gamma(y)
Expr lgamma(const Expr &x) {
    Expr y = cast<double>(math::abs(x)), positive = lgamma_f64(y);
    Expr product = strict_mul(y, from_bits(magnitude_bits(turn_of(y).sine)));
    Expr negative = strict_sub(log_f64(strict_div(Expr(pi), product)), positive);
    Expr result = cast<float>(select(sign_bit(x) != bits32(0), negative, positive));
    result = select(is_pole(x) || !math::is_finite(x), float32(0x7f800000u), result);
    return select(scalide::is_nan(x), x, result);
}

// digamma(-y) = digamma(y) + 1 / y + pi / tan(pi y)
Expr digamma(const Expr &x) {
    Expr y = cast<double>(math::abs(x)), positive = digamma_f64(y);
    Turn turn = turn_of(y);
    Expr reflected = strict_add(strict_div(Expr(1.0), y), strict_mul(Expr(pi), strict_div(turn.cosine, turn.sine)));
    Expr result = cast<float>(select(sign_bit(x) != bits32(0), strict_add(positive, reflected), positive));
    result = select(is_pole(x), float32(0x7fc00000u), result);
    return select(float_bits(x) == bits32(0x7f800000u) || scalide::is_nan(x), x, result);
}

} // namespace scalide::math

namespace scalide {

ElementwiseRows gamma_rows() {
    static constexpr ElementwiseLowering rows[] = {{"lgamma", f32_one<math::lgamma>}, {"digamma", f32_one<math::digamma>}};
    return rows;
}

} // namespace scalide
