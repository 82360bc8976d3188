#include "lower/halide/strict.h"
#include "lower/math/elementwise_rows.h"
#include "lower/math/f64.h"
#include "lower/math/math.h"

namespace scalide::math {

using Halide::cast;
using Halide::Expr;
using Halide::select;

// x * p(x^2) up to 4; beyond 4, erf is 1 in f32. p is a Chebyshev interpolation of erf(x) / x over x^2 in [0, 16], in t = x^2 / 8 - 1;
// 2^-31.
Expr erf(const Expr &x) {
    Expr bounded = cast<double>(Halide::clamp(x, -4.0f, 4.0f));
    Expr t = strict_sub(strict_mul(strict_mul(bounded, bounded), Expr(0.125)), Expr(1.0));
    Expr p =
        polynomial(t, {9.4038124057505001e-05, -0.00024642199983313985, 0.00017322967616946534, -0.00032551968551344352,
                       0.0014101525983700969, -0.0029097128617510652, 0.0047749464889491026, -0.008384044356218724, 0.014381038603725362,
                       -0.022562558254696597, 0.033053291738936489, -0.045744312685375935, 0.059887829575690384, -0.07473048679558228,
                       0.090208941343430133, -0.10771029288650724, 0.13167511777580794, -0.17657623580039057, 0.35353099564340496});
    return select(scalide::is_nan(x), x, cast<float>(strict_mul(bounded, p)));
}

// e^(-x^2) g(s) / (1 + 2 |x|), where g(s) = e^(x^2) erfc(|x|) (1 + 2 |x|) and s = (|x| - 3) / (|x| + 3); 2^-34. |x| is limited to 10.3,
// beyond which erfc is 0 in f32. For x < 0 the result is 2 minus that.
Expr erfc_f64(const Expr &x) {
    Expr side = Halide::min(from_bits(magnitude_bits(x)), Expr(10.3));
    Expr s = strict_div(strict_sub(side, Expr(3.0)), strict_add(side, Expr(3.0)));
    Expr g = polynomial(s, {3.4302101242790211e-05, 0.00012985281598479955, -0.00012513955018274276, -0.0007920180319037995,
                            0.001892451413997974, 0.0025338959958958046, -0.023770463089559091, 0.068307366841291975, -0.11927373008044537,
                            0.12964519790975815, -0.047562290305505982, -0.13562110679852321, 1.2530080582387249});
    Expr tail =
        strict_mul(exp_f64(strict_sub(Expr(0.0), strict_mul(side, side))), strict_div(g, strict_add(strict_add(side, side), Expr(1.0))));
    return select(strict_lt(x, Expr(0.0)), strict_sub(Expr(2.0), tail), tail);
}

Expr erfc(const Expr &x) { return select(scalide::is_nan(x), x, cast<float>(erfc_f64(cast<double>(x)))); }

// As in Giles (2010), with w = -log(1 - x^2): x p(w) for w up to 5 (2^-33), p(sqrt w) beyond (2^-29).
Expr erf_inv(const Expr &x) {
    Expr magnitude = math::abs(x), side = cast<double>(Halide::min(magnitude, 0.99999994f));
    Expr w = strict_sub(Expr(0.0), log_f64(strict_mul(strict_sub(Expr(1.0), side), strict_add(Expr(1.0), side))));
    Expr central =
        polynomial(Halide::min(w, Expr(5.0)),
                   {-2.1203577709757176e-11, 7.5913621155358932e-10, -1.1297069693261743e-08, 8.3506571066520528e-08,
                    -2.3506249545087695e-07, -5.7285409644004164e-07, 1.3458066281925859e-06, 4.731327217091463e-05,
                    -0.00012851973817135659, -0.0023349057954359562, 0.011549299438840664, 0.23201367024532818, 0.88622692539814041});
    Expr tail = polynomial(strict_sub(math::sqrt(Halide::max(w, Expr(5.0))), Expr(3.2)),
                           {3.1274448217946979e-06, -1.4870028930416121e-05, 2.4679707877095904e-05, 1.5788692189321535e-05,
                            -0.00022874322333812206, 0.00091285262413771766, -0.00262266522785217, 0.0050325538759751435, 1.005021195745643,
                            3.0335824051373463});
    Expr result = cast<float>(select(strict_lt(w, Expr(5.0)), strict_mul(side, central), tail));
    result = select(strict_eq(magnitude, Expr(1.0f)), float32(0x7f800000u), result);
    return select(strict_le(magnitude, Expr(1.0f)), with_sign_of(result, x), float32(0x7fc00000u));
}

} // namespace scalide::math

namespace scalide {

ElementwiseRows error_function_rows() {
    static constexpr ElementwiseLowering rows[] = {
        {"erf", f32_one<math::erf>}, {"erfc", f32_one<math::erfc>}, {"erf_inv", f32_one<math::erf_inv>}};
    return rows;
}

} // namespace scalide
