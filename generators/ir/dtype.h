#pragma once
#include "scalide/dtypes.h"
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace scalide {

/// Element types. They are the rows of runtime/include/scalide/dtypes.h; their numbers are part of the C ABI. f64 is only for scalars
/// between kernels (scale arithmetic), never for arguments.
#define SCALIDE_ENUMERATOR(id, name, text, number, ...) name = number,
enum class Dtype : uint8_t { SCALIDE_DTYPES(SCALIDE_ENUMERATOR) };
#undef SCALIDE_ENUMERATOR

/// How a value halfway between two numbers is rounded.
enum class Ties : uint8_t {
    even, ///< to the even bit pattern (IEEE 754)
    up,   ///< to the larger magnitude
};

/// A binary floating-point format. A normal number is (-1)^s * 2^(e - bias) * 1.m. If has_subnormals, e = 0 means a subnormal number.
struct FormatSpec {
    Dtype dtype;
    int exponent_bits, mantissa_bits, bias;
    bool has_sign, has_infinity, has_subnormals;
    bool has_negative_zero; ///< fnuz formats use the bit pattern of -0 for NaN
    uint32_t nan_code;      ///< bit pattern of the canonical NaN; its sign bit is 0 if the format has NaNs of both signs
    uint32_t max_code;      ///< bit pattern of the largest finite number
    /// e8m0 rounds half-way cases up, as ml_dtypes 0.6.0 does. With Ties::even it rounds as ml_dtypes 0.5.0.
    Ties ties = Ties::even;
    int bits() const { return exponent_bits + mantissa_bits + has_sign; }
};

/// What encode() does with values that the format does not have.
enum class Overflow : uint8_t {
    /// A finite value that is too large becomes the largest finite number with its sign. Infinity becomes infinity, or NaN if the format
    /// has no
    /// infinity. NaN becomes the canonical NaN. e8m0: zero and negative values become bit pattern 0.
    saturate,
    /// As JAX. A value that is too large becomes infinity with its sign, or NaN if the format has no infinity. NaN keeps its sign if the
    /// format
    /// has both. e8m0: zero and negative values become NaN.
    format,
    /// As saturate, but infinity also becomes the largest finite number, as GPU instructions and cuBLASLt do it.
    clip,
};

/// "f32", "f16", "bf16", "f8_e4m3fn", "f8_e5m2", "f8_e4m3fnuz", "f8_e5m2fnuz", "f8_e8m0fnu", "i32", "bool", "f64",
/// "i8", "u8", "i16", "u16", "u32", "f8_e3m4", "f8_e4m3", "f8_e4m3b11fnuz", "i64".
std::string_view to_string(Dtype dtype);
std::optional<Dtype> parse_dtype(std::string_view name);
std::span<const Dtype> all_dtypes();

bool is_float(Dtype dtype);
/// Returns true for a signed or unsigned integer dtype. bool is neither.
bool is_integer(Dtype dtype);
bool is_signed(Dtype dtype);
bool is_unsigned(Dtype dtype);
/// Returns true for a float of less than 32 bits. Policies store values in such dtypes; arithmetic converts them to f32.
bool is_narrow(Dtype dtype);
int bits_of(Dtype dtype);
/// Returns the size of one element in bytes.
int size_of(Dtype dtype);

/// Returns true if f64 represents the integer exactly. The build and the interpreter compute in f64 and refuse other integers.
bool is_exact_in_f64(int64_t number);

struct IntegerRange {
    double smallest, largest;
};
/// Returns the range of an integer dtype. The largest i64 is rounded to 2^63. Throws InternalError for other dtypes.
IntegerRange range_of(Dtype dtype);
/// Converts a number to an integer dtype: the low bits of its integer part, the end of the range for infinity, 0 for NaN.
double wrap_integer(Dtype dtype, double value);
/// Converts a float to an integer dtype as XLA does: rounds towards zero, clamps to the range, 0 for NaN.
double saturate_integer(Dtype dtype, double value);

/// Returns the format of a float dtype of at most 32 bits. Throws InternalError for integers, bool and f64.
const FormatSpec &format_of(Dtype dtype);

/// Returns the Overflow that keeps an intended infinity, such as the start of a maximum: infinity, or the largest number if the format has
/// no infinity.
Overflow keeping_infinity(Dtype dtype);

/// Returns the f64 value of a bit pattern.
double decode(const FormatSpec &format, uint32_t code);
/// Returns the middle between the largest number of a format and the number that would follow it. Larger magnitudes are beyond the format.
/// A number that is only a rounding error above the largest, such as an amax divided by its scale, is not.
double beyond_limit(const FormatSpec &format);
/// True if a magnitude of exactly beyond_limit() is beyond the format: a tie goes to the even bit pattern.
bool is_tie_beyond(const FormatSpec &format);
/// True if rounding a magnitude to nearest would need a number above the largest number of the format.
bool is_beyond(const FormatSpec &format, double magnitude);
/// Returns the bit pattern of the nearest number, rounded once from f64. `format.ties` decides half-way cases. e8m0 has no zero: values up
/// to 2^-127 become bit pattern 0, and larger values up to 2^-126 become 1, as in ml_dtypes.
uint32_t encode(const FormatSpec &format, double value, Overflow overflow = Overflow::saturate);
/// Returns decode(encode(value)). f32 never saturates: it overflows to infinity. For f64 it returns the value itself.
double round_to(Dtype dtype, double value, Overflow overflow = Overflow::saturate);
/// Converts a value to the bits of an element of at most 32 bits in memory, and back. Floats use Overflow::format, integers wrap around,
/// bools are 0 and 1. Throws InternalError for f64 and i64.
uint32_t code_of(Dtype dtype, double value);
double value_of(Dtype dtype, uint32_t code);
/// Returns XLA's reduce_precision of an f32 value. It rounds the mantissa to nearest even. A value that is too large for an IEEE format
/// with `exponent_bits` (1 to 8) becomes infinity; a value below its normal numbers becomes zero. NaN stays.
double reduce_precision(double value, int exponent_bits, int mantissa_bits);

} // namespace scalide
