#pragma once
#include "scalide/dtypes.h"
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace scalide {

/// Element types: the rows of the manifest (runtime/include/scalide/dtypes.h), whose numbers are part of the C ABI. f64 is for scale
/// arithmetic alone: rank 0, between kernels, never an argument.
#define SCALIDE_ENUMERATOR(id, name, text, number, ...) name = number,
enum class Dtype : uint8_t { SCALIDE_DTYPES(SCALIDE_ENUMERATOR) };
#undef SCALIDE_ENUMERATOR

/// Where a value half-way between two codes goes.
enum class Ties : uint8_t {
    even, ///< to the even code (IEEE 754)
    up,   ///< to the larger magnitude
};

/// A binary floating point storage format. value = (-1)^s * 2^(e - bias) * 1.m, subnormals at e = 0 (unless !has_subnormals).
struct FormatSpec {
    Dtype dtype;
    int exponent_bits, mantissa_bits, bias;
    bool has_sign, has_infinity, has_subnormals;
    bool has_negative_zero; ///< fnuz formats use the code of -0 for NaN
    uint32_t nan_code;      ///< the canonical NaN, sign bit clear where the format has NaNs of both signs
    uint32_t max_code;      ///< the largest finite value
    /// e8m0 rounds ties up, as ml_dtypes 0.6.0 does; a copy of its row with Ties::even rounds as ml_dtypes 0.5.0.
    Ties ties = Ties::even;
    int bits() const { return exponent_bits + mantissa_bits + has_sign; }
};

/// What an encode does with what the format does not have.
enum class Overflow : uint8_t {
    /// What rounds beyond the largest finite value is that value, with the sign. What is infinite stays so: infinity where the format has
    /// one, else NaN. NaN: the canonical NaN, sign clear. e8m0: zero and negative values are code 0.
    saturate,
    /// JAX's rule. Beyond the largest finite value: infinity where the format has one, else NaN, with the sign. NaN keeps its sign where
    /// the format has both. e8m0: zero and negative values are NaN.
    format,
    /// As saturate, but infinities are the largest finite value too, as cards' instructions and libraries have it.
    clip,
};

/// "f32", "f16", "bf16", "f8_e4m3fn", "f8_e5m2", "f8_e4m3fnuz", "f8_e5m2fnuz", "f8_e8m0fnu", "i32", "bool", "f64",
/// "i8", "u8", "i16", "u16", "u32", "f8_e3m4", "f8_e4m3", "f8_e4m3b11fnuz".
std::string_view to_string(Dtype dtype);
std::optional<Dtype> parse_dtype(std::string_view name);
std::span<const Dtype> all_dtypes();

bool is_float(Dtype dtype);
/// Signed or unsigned; bool is neither.
bool is_integer(Dtype dtype);
bool is_signed(Dtype dtype);
bool is_unsigned(Dtype dtype);
/// A float of less than 32 bits: what policies store in, and arithmetic widens.
bool is_narrow(Dtype dtype);
int bits_of(Dtype dtype);
/// Bytes of one element in memory.
int size_of(Dtype dtype);

struct IntegerRange {
    double smallest, largest;
};
/// Throws InternalError for a dtype that is no integer.
IntegerRange range_of(Dtype dtype);
/// What an integer dtype holds of a number: the low bits of its whole part, the ends of the range for infinities, 0 for NaN.
double wrap_integer(Dtype dtype, double value);
/// What it holds of a float: towards zero, at most its range, 0 for NaN (XLA).
double saturate_integer(Dtype dtype, double value);

/// The format of a float dtype of at most 32 bits. Throws InternalError for integers, bool and f64.
const FormatSpec &format_of(Dtype dtype);

/// What keeps an infinity that is meant (a maximum begins with one, a place is filled with one): itself, or where the format has none its
/// largest number.
Overflow keeping_infinity(Dtype dtype);

/// The f64 value of a storage code.
double decode(const FormatSpec &format, uint32_t code);
/// The nearest code, rounded once from f64; `format.ties` decides half-way cases. e8m0 has no zero: positive values round as if code 0 were
/// one, so that everything up to 2^-127 is code 0 and everything above it up to 2^-126 is code 1 (ml_dtypes does the same).
uint32_t encode(const FormatSpec &format, double value, Overflow overflow = Overflow::saturate);
/// decode(encode(value)). f32 never saturates (overflow: to infinity), f64 is the value itself.
double round_to(Dtype dtype, double value, Overflow overflow = Overflow::saturate);
/// The bits of an element of at most 32 bits in memory, and back: floats by JAX's rule (Overflow::format), integers wrap around, bools are
/// 0 and 1.
uint32_t code_of(Dtype dtype, double value);
double value_of(Dtype dtype, uint32_t code);
/// XLA's reduce_precision of an f32 value: the mantissa is rounded to nearest even, then what lies beyond the exponents of an IEEE format
/// of `exponent_bits` (1 to 8) becomes infinity and what lies below its normal values becomes zero; NaN stays.
double reduce_precision(double value, int exponent_bits, int mantissa_bits);

} // namespace scalide
