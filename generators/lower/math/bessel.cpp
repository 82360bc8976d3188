#include "lower/halide/strict.h"
#include "lower/math/elementwise_rows.h"
#include "lower/math/math.h"

// Modified Bessel functions of the first kind times e^-|x|. Up to 8, a polynomial in |x| / 4 - 1; beyond, a polynomial in 1 / |x|, divided
// by sqrt |x|; 2^-32.

namespace scalide::math {

using Halide::cast;
using Halide::Expr;
using Halide::select;

namespace {

struct Parts {
    Expr is_small, small, inverse, root; // at most 8; |x| / 4 - 1; 1 / |x| and 1 / sqrt |x| beyond 8
};

Parts parts_of(const Expr &side) {
    Expr inverse = strict_div(Expr(1.0), Halide::max(side, Expr(8.0)));
    return {strict_le(side, Expr(8.0)), strict_sub(strict_mul(Halide::min(side, Expr(8.0)), Expr(0.25)), Expr(1.0)), inverse,
            math::sqrt(inverse)};
}

} // namespace

Expr bessel_i0e(const Expr &x) {
    Parts at = parts_of(cast<double>(math::abs(x)));
    Expr small = polynomial(at.small, {4.9179880568712156e-05, -0.00013592012253898714, 0.00010271895372353992, -0.00020636304369520323,
                                       0.00093523290189549766, -0.0020461394012041252,  0.0035544404927951639,  -0.0066059360847573103,
                                       0.011991198838098599,   -0.019775351862593438,   0.03016828583734163,    -0.042957250615266312,
                                       0.056778814876906565,   -0.069546514161842071,   0.079275044908509007,   -0.084962840761423741,
                                       0.087343424583434567,   -0.089043466456502324,   0.094515628425096698,   -0.11300432654348769,
                                       0.20700192122398736});
    Expr large = polynomial(at.inverse, {9.0290413791581674, -2.1197722648135149, 0.37284313914831008, 0.027236243270779482,
                                         0.029790933049984616, 0.028041596742421702, 0.049867839069436988, 0.39894228034863216});
    Expr result = cast<float>(select(at.is_small, small, strict_mul(large, at.root)));
    return select(scalide::is_nan(x), x, result);
}

Expr bessel_i1e(const Expr &x) {
    Expr side = cast<double>(math::abs(x));
    Parts at = parts_of(side);
    Expr small = polynomial(at.small, {5.9841658914519059e-06, -1.7454759175059561e-05, 1.7599515052700538e-05, -4.0772624197105836e-05,
                                       0.00015715442407232479, -0.00036844709599406973, 0.00073759304683163659, -0.0015172279414557587,
                                       0.0030091920029870025,  -0.0055453096112770411,  0.009582902462082904,   -0.015567987669806814,
                                       0.023686213083084889,   -0.033671970573623498,   0.044674552717893085,   -0.055279976796080793,
                                       0.063767404637961309,   -0.068482609105435147,   0.06805759989686741,    -0.061124337990074107,
                                       0.044687709875609147});
    Expr large = polynomial(at.inverse, {-10.161899273508084, 2.3791430808518705, -0.43064061060398684, -0.037598743555338175,
                                         -0.041560030224600829, -0.046740704400696727, -0.14960341710369993, 0.39894228046200525});
    Expr magnitude = cast<float>(select(at.is_small, strict_mul(side, small), strict_mul(large, at.root)));
    return select(scalide::is_nan(x), x, with_sign_of(magnitude, x));
}

} // namespace scalide::math

namespace scalide {

ElementwiseRows bessel_rows() {
    static constexpr ElementwiseLowering rows[] = {{"bessel_i0e", f32_one<math::bessel_i0e>}, {"bessel_i1e", f32_one<math::bessel_i1e>}};
    return rows;
}

} // namespace scalide
