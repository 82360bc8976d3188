#include "expr/base_operators.h"
#include "expr/special_functions.h"
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <unordered_map>

namespace scalide {

namespace {

using Values = std::span<const double>;

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

/// NaN wins, and -0 < +0.
double larger(double a, double b) {
    if (std::isnan(a) || std::isnan(b)) return not_a_number;
    if (a == b) return std::signbit(a) ? b : a;
    return a > b ? a : b;
}

/// -1, -0, +0, 1 or NaN.
double sign(double x) { return x > 0 ? 1.0 : x < 0 ? -1.0 : x; }

/// The power of two that |x| = m * 2^e, m in [1, 2), is rounded to: 2^e below `threshold`, else 2^(e+1). Zero, infinities and NaN stay,
/// the sign is kept.
double round_to_power(double x, double threshold) {
    if (x == 0 || !std::isfinite(x)) return x;
    int exponent = 0;
    const double mantissa = 2 * std::frexp(std::fabs(x), &exponent);
    return std::copysign(std::ldexp(1.0, mantissa < threshold ? exponent - 1 : exponent), x);
}

/// Within the powers of two whose reciprocals are normal f32 too; 0 and NaN stay.
double clamp_scale(double x) { return x == 0 ? 0 : std::clamp(x, 0x1p-126, 0x1p127); }

/// Of the norm and what it is to become.
double norm_to_scale(Values v) { return v[0] > 0 && std::isfinite(v[0]) ? clamp_scale(round_to_power(v[0] / v[1], 2)) : 1; }

int64_t bits(double x) { return static_cast<int64_t>(x); }

/// XLA: truncates; x / 0 = -1.
double divide_integers(Values v) { return v[1] == 0 ? -1.0 : std::trunc(v[0] / v[1]); }

/// XLA: the sign of the dividend; x % 0 = x.
double remainder_integers(Values v) { return v[1] == 0 ? v[0] : std::fmod(v[0], v[1]); }

double wrap(uint64_t x) { return static_cast<int32_t>(static_cast<uint32_t>(x)); }

/// Exact in the low 32 bits, where an f64 product is not.
double multiply_integers(Values v) { return wrap(static_cast<uint64_t>(bits(v[0])) * static_cast<uint64_t>(bits(v[1]))); }

/// The exponent is not negative. Modulo 2^64, of which the low 32 bits count.
double integer_power(Values v) {
    auto base = static_cast<uint64_t>(bits(v[0])), power = uint64_t{1};
    for (auto exponent = bits(v[1]); exponent > 0; exponent /= 2, base *= base)
        if (exponent % 2 == 1) power *= base;
    return wrap(power);
}

/// The low bits of a number that is stored in `width` bits.
uint64_t low_bits(double x, double width) { return static_cast<uint64_t>(bits(x)) & ((uint64_t{1} << bits(width)) - 1); }

/// v: number, distance, width. LAX takes the distance as unsigned; past the width nothing is left, or the sign.
bool is_past(Values v) { return low_bits(v[1], v[2]) >= low_bits(v[2], 32); }

double shift_left(Values v) { return is_past(v) ? 0 : wrap(low_bits(v[0], v[2]) << bits(v[1])); }

double shift_right_logical(Values v) { return is_past(v) ? 0 : double(low_bits(v[0], v[2]) >> bits(v[1])); }

/// The number is taken as signed, whatever its dtype.
double shift_right_arithmetic(Values v) {
    const int unused = 64 - static_cast<int>(v[2]);
    const auto number = static_cast<int64_t>(static_cast<uint64_t>(bits(v[0])) << unused) >> unused;
    return double(number >> (is_past(v) ? 63 : bits(v[1])));
}

double select_case(Values v) {
    const double last = static_cast<double>(v.size()) - 2;
    return v[1 + static_cast<size_t>(std::clamp(v[0], 0.0, last))];
}

// clang-format off
constexpr BaseOperator table[] = {
    // arithmetic
    {"add", Shape::elementwise, 2, [](Values v) { return v[0] + v[1]; }},
    {"sub", Shape::elementwise, 2, [](Values v) { return v[0] - v[1]; }},
    {"mul", Shape::elementwise, 2, [](Values v) { return v[0] * v[1]; }, multiply_integers},
    {"div", Shape::elementwise, 2, [](Values v) { return v[0] / v[1]; }, divide_integers},
    {"rem", Shape::elementwise, 2, [](Values v) { return std::fmod(v[0], v[1]); }, remainder_integers},
    {"neg", Shape::elementwise, 1, [](Values v) { return -v[0]; }},
    {"abs", Shape::elementwise, 1, [](Values v) { return std::fabs(v[0]); }},
    {"sign", Shape::elementwise, 1, [](Values v) { return sign(v[0]); }},
    {"max", Shape::elementwise, 2, [](Values v) { return larger(v[0], v[1]); }},
    {"min", Shape::elementwise, 2, [](Values v) { return -larger(-v[0], -v[1]); }},
    // functions of one number
    {"exp", Shape::elementwise, 1, [](Values v) { return std::exp(v[0]); }},
    {"exp2", Shape::elementwise, 1, [](Values v) { return std::exp2(v[0]); }},
    {"expm1", Shape::elementwise, 1, [](Values v) { return std::expm1(v[0]); }},
    {"log", Shape::elementwise, 1, [](Values v) { return std::log(v[0]); }},
    {"log1p", Shape::elementwise, 1, [](Values v) { return std::log1p(v[0]); }},
    {"tanh", Shape::elementwise, 1, [](Values v) { return std::tanh(v[0]); }},
    {"logistic", Shape::elementwise, 1, [](Values v) { return 1 / (1 + std::exp(-v[0])); }},
    {"erf", Shape::elementwise, 1, [](Values v) { return std::erf(v[0]); }},
    {"erfc", Shape::elementwise, 1, [](Values v) { return std::erfc(v[0]); }},
    {"sqrt", Shape::elementwise, 1, [](Values v) { return std::sqrt(v[0]); }},
    {"rsqrt", Shape::elementwise, 1, [](Values v) { return 1 / std::sqrt(v[0]); }},
    {"cbrt", Shape::elementwise, 1, [](Values v) { return std::cbrt(v[0]); }},
    {"sin", Shape::elementwise, 1, [](Values v) { return std::sin(v[0]); }},
    {"cos", Shape::elementwise, 1, [](Values v) { return std::cos(v[0]); }},
    {"tan", Shape::elementwise, 1, [](Values v) { return std::tan(v[0]); }},
    {"asin", Shape::elementwise, 1, [](Values v) { return std::asin(v[0]); }},
    {"acos", Shape::elementwise, 1, [](Values v) { return std::acos(v[0]); }},
    {"atan", Shape::elementwise, 1, [](Values v) { return std::atan(v[0]); }},
    {"atan2", Shape::elementwise, 2, [](Values v) { return std::atan2(v[0], v[1]); }},
    {"sinh", Shape::elementwise, 1, [](Values v) { return std::sinh(v[0]); }},
    {"cosh", Shape::elementwise, 1, [](Values v) { return std::cosh(v[0]); }},
    {"asinh", Shape::elementwise, 1, [](Values v) { return std::asinh(v[0]); }},
    {"acosh", Shape::elementwise, 1, [](Values v) { return std::acosh(v[0]); }},
    {"atanh", Shape::elementwise, 1, [](Values v) { return std::atanh(v[0]); }},
    {"floor", Shape::elementwise, 1, [](Values v) { return std::floor(v[0]); }},
    {"ceil", Shape::elementwise, 1, [](Values v) { return std::ceil(v[0]); }},
    {"round", Shape::elementwise, 1, [](Values v) { return std::nearbyint(v[0]); }}, // ties to even
    // special functions
    {"erf_inv", Shape::elementwise, 1, [](Values v) { return erf_inv(v[0]); }},
    {"lgamma", Shape::elementwise, 1, [](Values v) { return std::lgamma(v[0]); }},
    {"digamma", Shape::elementwise, 1, [](Values v) { return digamma(v[0]); }},
    {"zeta", Shape::elementwise, 2, [](Values v) { return zeta(v[0], v[1]); }},
    {"igamma", Shape::elementwise, 2, [](Values v) { return igamma(v[0], v[1]); }},
    {"igammac", Shape::elementwise, 2, [](Values v) { return igammac(v[0], v[1]); }},
    {"regularized_incomplete_beta", Shape::elementwise, 3, [](Values v) { return regularized_incomplete_beta(v[0], v[1], v[2]); }},
    {"bessel_i0e", Shape::elementwise, 1, [](Values v) { return bessel_i0e(v[0]); }},
    {"bessel_i1e", Shape::elementwise, 1, [](Values v) { return bessel_i1e(v[0]); }},
    {"nextafter", Shape::elementwise, 2, [](Values v) { return double(std::nextafter(float(v[0]), float(v[1]))); }}, // of f32
    // powers
    {"pow", Shape::elementwise, 2, [](Values v) { return std::pow(v[0], v[1]); }},
    {"integer_pow", Shape::elementwise, 1, [](Values v) { return std::pow(v[0], v[1]); }, integer_power, "y"},
    {"pow2_down", Shape::elementwise, 1, [](Values v) { return round_to_power(v[0], 2); }},
    {"pow2_up", Shape::elementwise, 1, [](Values v) { return round_to_power(v[0], std::nextafter(1.0, 2.0)); }},
    {"pow2_nearest", Shape::elementwise, 1, [](Values v) { return round_to_power(v[0], 1.5); }}, // ties away from zero
    // scales
    {"divide_no_nan", Shape::elementwise, 2, [](Values v) { return v[1] == 0 ? 0 : v[0] / v[1]; }},
    {"norm_to_scale", Shape::elementwise, 1, norm_to_scale, nullptr, "to"},
    {"clamp_scale", Shape::elementwise, 1, [](Values v) { return clamp_scale(v[0]); }},
    // truth
    {"is_finite", Shape::elementwise, 1, [](Values v) { return double(std::isfinite(v[0])); }},
    {"eq", Shape::elementwise, 2, [](Values v) { return double(v[0] == v[1]); }},
    {"ne", Shape::elementwise, 2, [](Values v) { return double(v[0] != v[1]); }},
    {"lt", Shape::elementwise, 2, [](Values v) { return double(v[0] < v[1]); }},
    {"le", Shape::elementwise, 2, [](Values v) { return double(v[0] <= v[1]); }},
    {"gt", Shape::elementwise, 2, [](Values v) { return double(v[0] > v[1]); }},
    {"ge", Shape::elementwise, 2, [](Values v) { return double(v[0] >= v[1]); }},
    {"and", Shape::elementwise, 2, [](Values v) { return double(bits(v[0]) & bits(v[1])); }},
    {"or", Shape::elementwise, 2, [](Values v) { return double(bits(v[0]) | bits(v[1])); }},
    {"xor", Shape::elementwise, 2, [](Values v) { return double(bits(v[0]) ^ bits(v[1])); }},
    {"not", Shape::elementwise, 1, [](Values v) { return double(v[0] == 0); }, [](Values v) { return double(~bits(v[0])); }},
    {"shift_left", Shape::elementwise, 2, shift_left, nullptr, {}, true},
    {"shift_right_arithmetic", Shape::elementwise, 2, shift_right_arithmetic, nullptr, {}, true},
    {"shift_right_logical", Shape::elementwise, 2, shift_right_logical, nullptr, {}, true},
    {"population_count", Shape::elementwise, 1, [](Values v) { return double(std::popcount(low_bits(v[0], v[1]))); }, nullptr, {}, true},
    {"clz", Shape::elementwise, 1, [](Values v) { return std::countl_zero(low_bits(v[0], v[1])) - 64 + v[1]; }, nullptr, {}, true},
    {"select_n", Shape::elementwise, -1, select_case},
    {"debug_callback", Shape::elementwise, 1, [](Values v) { return v[0]; }},
    // storage
    {"convert_element_type", Shape::elementwise, 1, nullptr},
    {"bitcast_convert_type", Shape::elementwise, 1, nullptr},
    {"reduce_precision", Shape::elementwise, 1, nullptr},
    // movement
    {"broadcast_in_dim", Shape::movement, 1, nullptr},
    {"reshape", Shape::movement, 1, nullptr},
    {"transpose", Shape::movement, 1, nullptr},
    {"rev", Shape::movement, 1, nullptr},
    {"slice", Shape::movement, 1, nullptr},
    {"pad", Shape::movement, 2, nullptr},
    {"concatenate", Shape::movement, -1, nullptr},
    {"gather", Shape::movement, 2, nullptr},
    {"dynamic_slice", Shape::movement, -1, nullptr},
    {"dynamic_update_slice", Shape::movement, -1, nullptr},
    // sources
    {"constant", Shape::source, 0, nullptr},
    {"iota", Shape::source, 0, nullptr},
    {"size", Shape::source, 0, nullptr},
    // reductions
    {"reduce_sum", Shape::reduce, 1, nullptr},
    {"reduce_max", Shape::reduce, 1, nullptr},
    {"reduce_min", Shape::reduce, 1, nullptr},
    {"reduce_prod", Shape::reduce, 1, nullptr},
    {"reduce_and", Shape::reduce, 1, nullptr},
    {"reduce_or", Shape::reduce, 1, nullptr},
    {"reduce_xor", Shape::reduce, 1, nullptr},
    {"argmax", Shape::reduce, 1, nullptr},
    {"argmin", Shape::reduce, 1, nullptr},
    // scans
    {"cumsum", Shape::scan, 1, nullptr},
    {"cumprod", Shape::scan, 1, nullptr},
    {"cummax", Shape::scan, 1, nullptr},
    {"cummin", Shape::scan, 1, nullptr},
    {"cumlogsumexp", Shape::scan, 1, nullptr},
    // scatters
    {"scatter", Shape::scatter, 3, nullptr},
    {"scatter_add", Shape::scatter, 3, nullptr},
    {"scatter_mul", Shape::scatter, 3, nullptr},
    {"scatter_min", Shape::scatter, 3, nullptr},
    {"scatter_max", Shape::scatter, 3, nullptr},
    // sorting
    {"argsort", Shape::sort, -1, nullptr},
    // contraction
    {"dot_general", Shape::contract, 2, nullptr},
    // windows
    {"reduce_window_sum", Shape::window, 1, nullptr},
    {"reduce_window_max", Shape::window, 1, nullptr},
    {"reduce_window_min", Shape::window, 1, nullptr},
    {"select_and_scatter_add", Shape::window, 2, nullptr},
    {"select_and_gather_add", Shape::window, 2, nullptr},
    {"conv_general_dilated", Shape::window, 2, nullptr},
};
// clang-format on

} // namespace

const BaseOperator *find_base_operator(std::string_view name) {
    static const std::unordered_map<std::string_view, const BaseOperator *> by_name = [] {
        std::unordered_map<std::string_view, const BaseOperator *> rows;
        for (const BaseOperator &row : table) rows.emplace(row.name, &row);
        return rows;
    }();
    const auto row = by_name.find(name);
    return row == by_name.end() ? nullptr : row->second;
}

std::span<const BaseOperator> base_operators() { return table; }

} // namespace scalide
