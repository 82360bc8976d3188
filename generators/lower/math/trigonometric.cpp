#include "lower/halide/strict.h"
#include "lower/math/elementwise_rows.h"
#include "lower/math/math.h"

// Payne-Hanek reduction in integers: |x| = m 2^(e - 150) with a 24-bit m. So |x| * 2/pi modulo 4 needs only a window of the bits of 2/pi,
// whose position depends on e. The product is a 64-bit fraction: two bits of quadrant, 62 of angle.

namespace scalide::math {

using Halide::cast;
using Halide::Expr;
using Halide::select;

namespace {

// Bits -31 to 0 (zeros) and 1 to 224 of 2/pi.
constexpr uint32_t two_over_pi[] = {0, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u, 0x3c439041u, 0xfe5163abu};

Expr word64(uint64_t value) { return Halide::Internal::make_const(Halide::UInt(64), value); }

// Returns word first + index of the table; index is 0 to 4.
Expr table_word(const Expr &index, int first) {
    Expr word = bits32(two_over_pi[first + 4]);
    for (int i = 3; i >= 0; i--) word = select(index == bits32(i), bits32(two_over_pi[first + i]), word);
    return word;
}

Expr wide(const Expr &word) { return cast(Halide::UInt(64), word); }

// x = quadrant * pi/2 + angle, |angle| <= pi/4 (f64); for a finite x.
struct Reduced {
    Expr quadrant, angle;
};

Reduced reduce(const Expr &x) {
    Expr magnitude = magnitude_bits(x), exponent = magnitude >> 23;
    Expr m = (magnitude & bits32(0x7fffffu)) | bits32(0x800000u);
    // The window starts 2 bits above the unit, at 2^(e - 120) of the table. Small |x| do not use it.
    Expr offset = Halide::max(exponent, bits32(120)) - bits32(120);
    Expr index = Halide::min(offset >> 5, bits32(4)), shift = offset & bits32(31);
    auto window = [&](int i) { return (table_word(index, i) << shift) | ((table_word(index, i + 1) >> 1) >> (bits32(31) - shift)); };
    // Uses products of 32-bit words, because on most CPUs a 64-bit vector multiplication takes three of them.
    Expr product = (wide(m * window(0)) << 32) + wide(m) * wide(window(1)) + ((wide(m) * wide(window(2))) >> 32);
    Expr quadrant = (product + word64(uint64_t(1) << 61)) >> 62;
    Expr fraction = Halide::reinterpret(Halide::Int(64), product - (quadrant << 62));
    constexpr double unit = 3.4061215800304344e-19; // pi/2 * 2^-62
    Expr is_small = magnitude <= bits32(0x3f490fdbu);
    return {select(is_small, bits32(0), cast(Halide::UInt(32), quadrant)),
            select(is_small, cast<double>(from_bits(magnitude)), strict_mul(cast<double>(fraction), Expr(unit)))};
}

// Sine and cosine of an angle of at most pi/4.
struct Legs {
    Expr sine, cosine;
};

Legs legs(const Expr &angle) {
    Expr square = strict_mul(angle, angle);
    return {strict_mul(angle, polynomial(square, {2.7171509427693689e-06, -0.00019839181133485623, 0.0083333287126118515,
                                                  -0.16666666630871052, 0.9999999999955617})), // 2^-37
            polynomial(square, {2.4377694116770935e-05, -0.0013886594866760241, 0.041666615925969156, -0.49999999606954063,
                                0.9999999999512669})}; // 2^-33
}

Expr is_even(const Expr &quadrant) { return (quadrant & bits32(1)) == bits32(0); }

// sin(angle + quadrant * pi/2) in f32. The sign is flipped if the sign bit of `flip` is set.
Expr sine(const Expr &angle, const Expr &quadrant, const Expr &flip) {
    Expr a = cast<float>(angle), square = strict_mul(a, a), half = strict_mul(Expr(0.5f), square);
    Expr series = polynomial(square, {2.724962008007533e-06, -0.00019840084376422702, 0.008333331870341349, -0.16666666663844049}); // 2^-36
    Expr sine = strict_add(a, strict_mul(strict_mul(a, square), series)), rest = strict_sub(Expr(1.0f), half);
    Expr fourth = polynomial(square, {2.454768977246003e-05, -0.001388830186756237, 0.04166666465348879}); // 2^-30
    Expr lost = strict_sub(strict_sub(Expr(1.0f), rest), half);
    Expr cosine = strict_add(rest, strict_add(lost, strict_mul(strict_mul(square, square), fourth)));
    Expr value = select(is_even(quadrant), sine, cosine);
    return strict_mul(value, unit_with_sign(flip ^ ((quadrant & bits32(2)) << 30)));
}

Expr where_finite(const Expr &x, const Expr &result) { return select(math::is_finite(x), result, float32(0x7fc00000u)); }

} // namespace

Expr sin(const Expr &x) {
    Reduced reduced = reduce(x);
    return where_finite(x, sine(reduced.angle, reduced.quadrant, sign_bit(x)));
}

Expr cos(const Expr &x) {
    Reduced reduced = reduce(x);
    return where_finite(x, sine(reduced.angle, reduced.quadrant + bits32(1), bits32(0)));
}

// sin / cos, and -cos / sin in odd quadrants.
Expr tan(const Expr &x) {
    Reduced reduced = reduce(x);
    Legs both = legs(reduced.angle);
    Expr even = is_even(reduced.quadrant);
    Expr value = cast<float>(strict_div(select(even, both.sine, both.cosine), select(even, both.cosine, both.sine)));
    return where_finite(x, strict_mul(value, unit_with_sign(sign_bit(x) ^ ((reduced.quadrant & bits32(1)) << 31))));
}

} // namespace scalide::math

namespace scalide {

ElementwiseRows trigonometric_rows() {
    static constexpr ElementwiseLowering rows[] = {{"sin", f32_one<math::sin>}, {"cos", f32_one<math::cos>}, {"tan", f32_one<math::tan>}};
    return rows;
}

} // namespace scalide
