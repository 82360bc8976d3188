#include "expr/error.h"
#include "ir/dtype.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <string>

namespace scalide {

namespace {

#define SCALIDE_FORMAT(id, name, exponent, mantissa, bias, sign, infinity, subnormals, negative_zero, nan, largest, ties)                  \
    FormatSpec{Dtype::name, exponent, mantissa, bias, sign, infinity, subnormals, negative_zero, nan, largest, Ties::ties},
constexpr std::array formats{SCALIDE_FORMATS(SCALIDE_FORMAT)};
#undef SCALIDE_FORMAT

// By dtype: the index of its row, or -1 if it has none.
constexpr auto format_rows = [] {
    std::array<int, SCALIDE_DTYPE_COUNT> rows{};
    rows.fill(-1);
    for (size_t i = 0; i < formats.size(); i++) rows[static_cast<size_t>(formats[i].dtype)] = static_cast<int>(i);
    return rows;
}();

uint32_t magnitude_mask(const FormatSpec &format) { return (1u << (format.exponent_bits + format.mantissa_bits)) - 1; }

uint32_t sign_bit(const FormatSpec &format) { return format.has_sign ? magnitude_mask(format) + 1 : 0; }

bool has_nan(const FormatSpec &format) { return format.max_code < magnitude_mask(format) || !format.has_negative_zero; }

uint32_t nan_of(const FormatSpec &format, bool negative, Overflow overflow) {
    bool both_signs = format.has_sign && format.has_negative_zero;
    return format.nan_code | (negative && both_signs && overflow == Overflow::format ? sign_bit(format) : 0);
}

// Encodes the rounded magnitude. The encoded value may exceed max_code. `magnitude` must be finite and >= 0.
uint32_t round_magnitude(const FormatSpec &format, double magnitude) {
    int exponent = magnitude == 0 ? 1 - format.bias : std::max(std::ilogb(magnitude), 1 - format.bias);
    double scaled = std::ldexp(magnitude, format.mantissa_bits - exponent);
    double below = std::floor(scaled);
    auto code = static_cast<uint32_t>(below) + (static_cast<uint32_t>(exponent + format.bias - 1) << format.mantissa_bits);
    double rest = scaled - below;
    // Encoded value 0 is even. In e8m0 it is not the number zero: it is exactly this half-way value.
    bool tie_goes_up = format.ties == Ties::up ? code > 0 : code % 2 == 1;
    return code + (rest > 0.5 || (rest == 0.5 && tie_goes_up));
}

uint32_t overflow_code(const FormatSpec &format, bool negative, Overflow overflow, bool keeps) {
    if (!keeps || !has_nan(format)) return format.max_code | (negative ? sign_bit(format) : 0);
    if (format.has_infinity) return (format.max_code + 1) | (negative ? sign_bit(format) : 0);
    return nan_of(format, negative, overflow);
}

} // namespace

const FormatSpec &format_of(Dtype dtype) {
    const int row = format_rows[static_cast<size_t>(dtype)];
    if (row < 0) throw InternalError("internal error: format_of: " + std::string(to_string(dtype)) + " has no storage format");
    return formats[row];
}

Overflow keeping_infinity(Dtype dtype) { return dtype == Dtype::f64 || format_of(dtype).has_infinity ? Overflow::format : Overflow::clip; }

double decode(const FormatSpec &format, uint32_t code) {
    uint32_t magnitude = code & magnitude_mask(format);
    bool negative = code & sign_bit(format);
    bool is_infinity = format.has_infinity && magnitude == format.max_code + 1;
    bool is_nan = magnitude > format.max_code || (has_nan(format) && code == format.nan_code);
    double value;
    if (is_infinity) {
        value = std::numeric_limits<double>::infinity();
    } else if (is_nan) {
        value = std::numeric_limits<double>::quiet_NaN();
    } else {
        auto exponent = static_cast<int>(magnitude >> format.mantissa_bits);
        auto mantissa = static_cast<int>(magnitude & ((1u << format.mantissa_bits) - 1));
        bool subnormal = exponent == 0 && format.has_subnormals;
        int significand = mantissa + (subnormal ? 0 : 1 << format.mantissa_bits);
        value = std::ldexp(significand, std::max(exponent, subnormal ? 1 : 0) - format.bias - format.mantissa_bits);
    }
    return negative ? -value : value;
}

double beyond_limit(const FormatSpec &format) {
    const double largest = decode(format, format.max_code);
    return largest + std::ldexp(0.5, std::ilogb(largest) - format.mantissa_bits);
}

bool is_tie_beyond(const FormatSpec &format) { return format.max_code % 2 == 1; }

bool is_beyond(const FormatSpec &format, double magnitude) {
    const double limit = beyond_limit(format);
    return magnitude > limit || (magnitude == limit && is_tie_beyond(format));
}

uint32_t encode(const FormatSpec &format, double value, Overflow overflow) {
    bool negative = std::signbit(value);
    if (std::isnan(value)) return nan_of(format, negative, overflow);
    // what happens to a number that is too large
    bool keeps = overflow == Overflow::format || (overflow == Overflow::saturate && std::isinf(value));
    if (!format.has_sign && !(value > 0)) return keeps ? format.nan_code : 0;
    // Every value from twice the largest number upward overflows. The limit keeps the encoded value within 32 bits.
    double limit = std::ldexp(1.0, static_cast<int>(format.max_code >> format.mantissa_bits) - format.bias + 2);
    uint32_t magnitude = round_magnitude(format, std::min(std::abs(value), limit));
    if (magnitude > format.max_code) return overflow_code(format, negative, overflow, keeps);
    if (magnitude == 0 && !format.has_negative_zero) return 0;
    return magnitude | (negative ? sign_bit(format) : 0);
}

double round_to(Dtype dtype, double value, Overflow overflow) {
    if (dtype == Dtype::f64) return value;
    const FormatSpec &format = format_of(dtype);
    return decode(format, encode(format, value, dtype == Dtype::f32 ? Overflow::format : overflow));
}

uint32_t code_of(Dtype dtype, double value) {
    internal_check(bits_of(dtype) <= 32, "code_of: " + std::string(to_string(dtype)) + " has more than 32 bits");
    if (dtype == Dtype::boolean) return value != 0;
    return is_integer(dtype) ? static_cast<uint32_t>(wrap_integer(Dtype::u32, value)) : encode(format_of(dtype), value, Overflow::format);
}

double value_of(Dtype dtype, uint32_t code) {
    internal_check(bits_of(dtype) <= 32, "value_of: " + std::string(to_string(dtype)) + " has more than 32 bits");
    if (dtype == Dtype::boolean) return code != 0;
    return is_integer(dtype) ? wrap_integer(dtype, code) : decode(format_of(dtype), code);
}

double reduce_precision(double value, int exponent_bits, int mantissa_bits) {
    internal_check(exponent_bits >= 1 && exponent_bits <= 8 && mantissa_bits >= 0 && mantissa_bits <= 23,
                   "reduce_precision: widths beyond f32");
    if (std::isnan(value)) return value;
    auto bits = std::bit_cast<uint32_t>(static_cast<float>(value));
    uint32_t sign = bits & 0x80000000u, magnitude = bits & 0x7fffffffu;
    int dropped = 23 - mantissa_bits;
    if (dropped > 0) {
        magnitude += ((1u << dropped) >> 1) - 1 + (magnitude >> dropped & 1);
        magnitude = magnitude >> dropped << dropped;
    }
    if (exponent_bits < 8) {
        uint32_t bias = (1u << (exponent_bits - 1)) - 1;
        if (magnitude >> 23 > 127 + bias) magnitude = 0x7f800000u;
        if (magnitude >> 23 <= 127 - bias) magnitude = 0;
    }
    return std::bit_cast<float>(sign | magnitude);
}

} // namespace scalide
