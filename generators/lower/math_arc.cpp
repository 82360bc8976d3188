#include "lower/math.h"
#include "lower/strict.h"

// The inverse trigonometric functions are all the angle of a point. Computed in f64, where squares and differences of f32 lose nothing.

namespace scalide::math {

using Halide::cast;
using Halide::Expr;
using Halide::select;

namespace {

constexpr double pi = 3.141592653589793;

// The angle of (x, y), both finite and at least 0, not both 0. The polynomial is atan(r) / r over r^2 in [0, 1]; 2^-33.
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

// sqrt(1 - x^2), the other leg in the unit circle.
Expr leg(const Expr &x) { return math::sqrt(strict_mul(strict_sub(Expr(1.0), x), strict_add(Expr(1.0), x))); }

Expr within_unit(const Expr &magnitude, const Expr &result) {
    return select(strict_le(magnitude, Expr(1.0f)), result, float32(0x7fc00000u));
}

// Finite, and far beyond f32: so two infinities, and two zeros, make an angle.
Expr side(const Expr &magnitude) { return Halide::min(cast<double>(magnitude), Expr(1e300)); }

} // namespace

Expr atan(const Expr &x) {
    Expr result = cast<float>(angle_in_quadrant(side(math::abs(x)), Expr(1.0)));
    return select(scalide::is_nan(x), x, with_sign_of(result, x));
}

Expr asin(const Expr &x) {
    Expr magnitude = math::abs(x), y = cast<double>(magnitude);
    return within_unit(magnitude, with_sign_of(cast<float>(angle_in_quadrant(y, leg(y))), x));
}

Expr acos(const Expr &x) {
    Expr magnitude = math::abs(x), side = cast<double>(magnitude);
    return within_unit(magnitude, cast<float>(mirrored(angle_in_quadrant(leg(side), side), x)));
}

Expr atan2(const Expr &y, const Expr &x) {
    Expr long_side = Halide::max(side(math::abs(x)), Expr(1e-300));
    Expr result = cast<float>(mirrored(angle_in_quadrant(side(math::abs(y)), long_side), x));
    return select(scalide::is_nan(x) || scalide::is_nan(y), float32(0x7fc00000u), with_sign_of(result, y));
}

} // namespace scalide::math
