#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>

namespace scalide::test {

/// The distance of an f32 to a reference in units in the last place of the reference (of the smallest normal number below it). Infinity
/// counts as 2^128. A NaN on one side alone, or a zero of the wrong sign, is infinitely far.
inline double ulp_distance(float got, long double reference) {
    if (std::isnan(got) || std::isnan(reference)) return std::isnan(got) && std::isnan(reference) ? 0 : INFINITY;
    if (reference == 0 && got == 0) return std::signbit(got) == std::signbit(reference) ? 0 : INFINITY;
    const long double limit = std::ldexp(1.0L, 128);
    long double value = std::clamp<long double>(got, -limit, limit), right = std::clamp(reference, -limit, limit);
    int exponent = right == 0 ? -126 : std::clamp(std::ilogb(right), -126, 127);
    return static_cast<double>(std::fabs(std::ldexp(value - right, 23 - exponent)));
}

} // namespace scalide::test
