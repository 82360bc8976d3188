#include "lower/halide/strict.h"
#include "lower/math/elementwise_rows.h"
#include "lower/math/f64.h"
#include "lower/math/math.h"

namespace scalide::math {

using Halide::cast;
using Halide::Expr;
using Halide::select;

namespace {

Expr keep_nan(const Expr &x, const Expr &result) { return select(scalide::is_nan(x), x, result); }

// x|, limited to a value for which e^|x| exceeds f32.
Expr magnitude_f64(const Expr &x) { return cast<double>(Halide::min(math::abs(x), 90.0f)); }

// For small x, asinh and atanh equal x up to x^3 / 3. Above the limit, 1 + f(x) in f64 keeps enough bits of f(x).
Expr unless_small(const Expr &x, const Expr &result) { return select(magnitude_bits(x) < bits32(0x39000000u), x, result); } // 2^-13

Expr log_1_plus(const Expr &x) { return log_f64(strict_add(Expr(1.0), x)); }

} // namespace

// (e^x - e^-x) / 2 from e^x - 1, without cancellation near zero.
Expr sinh(const Expr &x) {
    Expr e = expm1_f64(magnitude_f64(x));
    Expr sum = strict_add(e, strict_div(e, strict_add(e, Expr(1.0))));
    return keep_nan(x, with_sign_of(cast<float>(strict_mul(sum, Expr(0.5))), x));
}

Expr cosh(const Expr &x) {
    Expr e = exp_f64(magnitude_f64(x));
    return keep_nan(x, cast<float>(strict_mul(strict_add(e, strict_div(Expr(1.0), e)), Expr(0.5))));
}

// log(1 + |x| + x^2 / (1 + sqrt(1 + x^2)))
Expr asinh(const Expr &x) {
    Expr magnitude = cast<double>(math::abs(x)), square = strict_mul(magnitude, magnitude);
    Expr root = math::sqrt(strict_add(Expr(1.0), square));
    Expr result = log_1_plus(strict_add(magnitude, strict_div(square, strict_add(Expr(1.0), root))));
    return select(math::is_finite(x), unless_small(x, with_sign_of(cast<float>(result), x)), x);
}

// log(1 + t + sqrt(t (t + 2))), t = x - 1
Expr acosh(const Expr &x) {
    Expr t = strict_sub(cast<double>(x), Expr(1.0));
    Expr result = cast<float>(log_1_plus(strict_add(t, math::sqrt(strict_mul(t, strict_add(t, Expr(2.0)))))));
    return select(strict_le(Expr(1.0f), x), select(math::is_finite(x), result, x), float32(0x7fc00000u));
}

// log((1 + |x|) / (1 - |x|)) / 2
Expr atanh(const Expr &x) {
    Expr magnitude = math::abs(x), side = cast<double>(magnitude);
    Expr quotient = strict_div(strict_add(Expr(1.0), side), strict_sub(Expr(1.0), side));
    Expr result = unless_small(x, with_sign_of(cast<float>(strict_mul(log_f64(quotient), Expr(0.5))), x));
    Expr is_one = strict_eq(magnitude, Expr(1.0f));
    result = select(is_one, with_sign_of(float32(0x7f800000u), x), result);
    return select(strict_le(magnitude, Expr(1.0f)), result, float32(0x7fc00000u));
}

} // namespace scalide::math

namespace scalide {

ElementwiseRows hyperbolic_rows() {
    static constexpr ElementwiseLowering rows[] = {{"sinh", f32_one<math::sinh>},
                                                   {"cosh", f32_one<math::cosh>},
                                                   {"asinh", f32_one<math::asinh>},
                                                   {"acosh", f32_one<math::acosh>},
                                                   {"atanh", f32_one<math::atanh>}};
    return rows;
}

} // namespace scalide
