#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace scalide {

/// Element types. f64 is for scale arithmetic alone: rank 0, between kernels, never an argument. The numbers are part of the C ABI
/// (runtime/include/scalide/scalide.h) and never change.
enum class Dtype : uint8_t {
    f32 = 0,
    f16 = 1,
    bf16 = 2,
    f8_e4m3fn = 3,
    f8_e5m2 = 4,
    f8_e4m3fnuz = 5,
    f8_e5m2fnuz = 6,
    f8_e8m0fnu = 7,
    i32 = 8,
    boolean = 9,
    f64 = 10
};

/// A binary floating point storage format. value = (-1)^s * 2^(e - bias) * 1.m, subnormals at e = 0 (unless !has_subnormals).
struct FormatSpec {
    Dtype dtype;
    int exponent_bits, mantissa_bits, bias;
    bool has_sign, has_infinity, has_subnormals;
    bool has_negative_zero; ///< fnuz formats use the code of -0 for NaN
    uint32_t nan_code;      ///< the canonical NaN, sign bit clear where the format has NaNs of both signs
    uint32_t max_code;      ///< the largest finite value
    int bits() const { return exponent_bits + mantissa_bits + has_sign; }
};

/// What an encode does with values beyond the largest finite one (NaN always becomes the canonical NaN, with sign clear).
enum class Overflow : uint8_t {
    saturate, ///< to the largest finite value of that sign; infinities too
    format,   ///< JAX's rule: to infinity where the format has one, else to NaN
};

/// "f32", "f16", "bf16", "f8_e4m3fn", "f8_e5m2", "f8_e4m3fnuz", "f8_e5m2fnuz", "f8_e8m0fnu", "i32", "bool".
std::string_view to_string(Dtype dtype);
std::optional<Dtype> parse_dtype(std::string_view name);
std::span<const Dtype> all_dtypes();

bool is_float(Dtype dtype);
/// Bytes of one element in memory.
int size_of(Dtype dtype);
/// The format of a float dtype (f32 included). Throws InternalError for i32 and bool.
const FormatSpec &format_of(Dtype dtype);

/// The f64 value of a storage code.
double decode(const FormatSpec &format, uint32_t code);
/// Nearest code, ties to even (e8m0: ties to the larger value, and zero, negatives and underflow go to code 0; NaN is 255). Correctly
/// rounded from f64 in one step.
uint32_t encode(const FormatSpec &format, double value, Overflow overflow = Overflow::saturate);
/// decode(encode(value)). f32 never saturates (overflow: to infinity).
double round_to(Dtype dtype, double value, Overflow overflow = Overflow::saturate);

} // namespace scalide
