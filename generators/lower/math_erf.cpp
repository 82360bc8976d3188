#include "lower/math.h"
#include "lower/math_f64.h"
#include "lower/strict.h"

namespace scalide::math {

using Halide::cast;
using Halide::Expr;
using Halide::select;

// x * p(x^2) up to 4, where erf is 1 in f32. p: Chebyshev interpolation of erf(x) / x over x^2 in [0, 16], in t = x^2 / 8 - 1; 2^-31.
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

// e^(-x^2) g(s) / (1 + 2 |x|), where g(s) = e^(x^2) erfc(|x|) (1 + 2 |x|), s = (|x| - 3) / (|x| + 3), up to 10.3, beyond which erfc is 0 in
// f32; 2^-34. 2 - that below zero.
Expr erfc(const Expr &x) {
    Expr side = cast<double>(Halide::min(math::abs(x), 10.3f));
    Expr s = strict_div(strict_sub(side, Expr(3.0)), strict_add(side, Expr(3.0)));
    Expr g = polynomial(s, {3.4302101242790211e-05, 0.00012985281598479955, -0.00012513955018274276, -0.0007920180319037995,
                            0.001892451413997974, 0.0025338959958958046, -0.023770463089559091, 0.068307366841291975, -0.11927373008044537,
                            0.12964519790975815, -0.047562290305505982, -0.13562110679852321, 1.2530080582387249});
    Expr tail = strict_mul(exp_f64(-strict_mul(side, side)), strict_div(g, strict_add(strict_add(side, side), Expr(1.0))));
    Expr result = select(sign_bit(x) != bits32(0), strict_sub(Expr(2.0), tail), tail);
    return select(scalide::is_nan(x), x, cast<float>(result));
}

} // namespace scalide::math
