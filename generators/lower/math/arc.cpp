#include "lower/halide/strict.h"
#include "lower/math/elementwise_rows.h"
#include "lower/math/math.h"

// atan2 computes in f64, because the quotient of two f32 is precise enough there. The other functions stay below 2 ulp in f32.

namespace scalide::math {

using Halide::cast;
using Halide::Expr;
using Halide::select;

namespace {

constexpr double pi = 3.141592653589793;

// The angle of (x, y). Both must be finite and at least 0, and not both 0. The polynomial is atan(r) / r over r^2 in [0, 1]; 2^-33.
Expr angle_in_quadrant(const Expr &y, const Expr &x) {
    Expr is_steep = strict_lt(x, y);
    Expr ratio = strict_div(select(is_steep, x, y), select(is_steep, y, x));
    Expr angle = strict_mul(ratio, polynomial(strict_mul(ratio, ratio),
                                              {-0.00066339524137640758, 0.0047324829987939873, -0.015828319890303203, 0.033826215081032,
                                               -0.05395667730662497, 0.072282781676354241, -0.089741718956288824, 0.11091922949633487,
                                               -0.14283813253845248, 0.19999901102031373, -0.3333333129088546, 0.99999999992930344}));
    return select(is_steep, strict_sub(Expr(pi / 2), angle), angle);
}

Expr mirrored(const Expr &angle, const Expr &x) { return select(sign_bit(x) != bits32(0), strict_sub(Expr(pi), angle), angle); }

Expr within_unit(const Expr &magnitude, const Expr &result) {
    return select(strict_le(magnitude, Expr(1.0f)), result, float32(0x7fc00000u));
}

// Limits a side to a finite value far beyond f32, so that two infinities, or two zeros, give an angle.
Expr side(const Expr &magnitude) { return Halide::min(cast<double>(magnitude), Expr(1e300)); }

} // namespace

Expr atan(const Expr &x) {
    Expr magnitude = math::abs(x), is_steep = strict_lt(Expr(1.0f), magnitude);
    Expr r = select(is_steep, strict_div(Expr(1.0f), magnitude), magnitude), square = strict_mul(r, r);
    Expr series =
        polynomial(square, {-0.002386997316724113, 0.013507771427020535, -0.03587153898204336, 0.06250169444749563, -0.08656880430154522,
                            0.11033764115313455, -0.14278568748210602, 0.1999973932983558, -0.3333333173306352}); // 2^-26.5
    Expr angle = strict_add(r, strict_mul(strict_mul(r, square), series));
    Expr result = select(is_steep, strict_sub(Expr(float(pi / 2)), angle), angle);
    return select(scalide::is_nan(x), x, with_sign_of(result, x));
}

namespace {

// asin |x| for |x| up to 1/2. For larger |x|, asin sqrt((1 - |x|) / 2), which is half the distance of the angle to pi / 2.
struct Arc {
    Expr is_half, sine, tail; ///< the angle is sine + tail
};

Arc arc(const Expr &magnitude) {
    Expr is_half = strict_lt(Expr(0.5f), magnitude);
    Expr square = select(is_half, strict_mul(strict_sub(Expr(1.0f), magnitude), Expr(0.5f)), strict_mul(magnitude, magnitude));
    Expr sine = select(is_half, math::sqrt(square), magnitude);
    Expr series = polynomial(square, {0.03374028050884876, 0.017121587649016196, 0.031106000730555115, 0.04459898840489624,
                                      0.07500095636159641, 0.16666666332957783}); // 2^-30
    return {is_half, sine, strict_mul(strict_mul(sine, square), series)};
}

} // namespace

// pi / 2 is split into two parts. The lower part is subtracted from the small term.
Expr asin(const Expr &x) {
    constexpr float head = float(pi / 2), rest = float(pi / 2 - double(head));
    Expr magnitude = math::abs(x), two = Expr(2.0f);
    Arc half = arc(magnitude);
    Expr twice = strict_add(strict_mul(half.sine, two), strict_sub(strict_mul(half.tail, two), Expr(rest)));
    Expr near_end = strict_sub(Expr(head), twice);
    return within_unit(magnitude, with_sign_of(select(half.is_half, near_end, strict_add(half.sine, half.tail)), x));
}

Expr acos(const Expr &x) {
    Expr magnitude = math::abs(x), is_negative = sign_bit(x) != bits32(0);
    Arc half = arc(magnitude);
    Expr angle = strict_add(half.sine, half.tail), twice = strict_mul(angle, Expr(2.0f));
    Expr near_end = select(is_negative, strict_sub(Expr(float(pi)), twice), twice);
    return within_unit(magnitude, select(half.is_half, near_end, strict_sub(Expr(float(pi / 2)), with_sign_of(angle, x))));
}

Expr atan2(const Expr &y, const Expr &x) {
    Expr long_side = Halide::max(side(math::abs(x)), Expr(1e-300));
    Expr result = cast<float>(mirrored(angle_in_quadrant(side(math::abs(y)), long_side), x));
    return select(scalide::is_nan(x) || scalide::is_nan(y), float32(0x7fc00000u), with_sign_of(result, y));
}

} // namespace scalide::math

namespace scalide {

ElementwiseRows arc_rows() {
    static constexpr ElementwiseLowering rows[] = {
        {"asin", f32_one<math::asin>}, {"acos", f32_one<math::acos>}, {"atan", f32_one<math::atan>}, {"atan2", f32_two<math::atan2>}};
    return rows;
}

} // namespace scalide
