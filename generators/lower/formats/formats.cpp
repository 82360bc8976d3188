#include "lower/formats/formats.h"
#include "expr/error.h"
#include "lower/halide/device_ops.h"
#include "lower/halide/strict.h"

#include <string>

namespace scalide {

using Halide::cast;
using Halide::Expr;
using Halide::max;
using Halide::min;
using Halide::select;
using Halide::UInt;

namespace {

constexpr uint32_t infinity_bits = 0x7f800000u, magnitude_bits = 0x7fffffffu, quiet_nan_bits = 0x7fc00000u;

uint32_t magnitude_mask(const FormatSpec &format) { return (1u << (format.exponent_bits + format.mantissa_bits)) - 1; }
uint32_t sign_bit(const FormatSpec &format) { return format.has_sign ? magnitude_mask(format) + 1 : 0; }
// The shift that moves a bit pattern to the position of f32's exponent and mantissa, and the difference of the exponent biases.
int shift_of(const FormatSpec &format) { return 23 - format.mantissa_bits; }
uint32_t rebias_of(const FormatSpec &format) { return static_cast<uint32_t>(127 - format.bias) << 23; }
bool has_nan(const FormatSpec &format) { return format.max_code < magnitude_mask(format) || !format.has_negative_zero; }
// True for formats with f32's exponents. Their subnormal numbers are no normal f32 numbers.
bool has_wide_exponent(const FormatSpec &format) { return format.exponent_bits == 8 && format.bias == 127; }

// The target is known only when the kernel is lowered by Halide.
Expr has(Halide::Target::Feature feature) { return Halide::target_has_feature(feature); }

// Uses the f16 conversion instructions of x86 (F16C) and CUDA. A host with F16C may have an OpenCL device, which lacks them.
Expr in_hardware(const Expr &hardware, const Expr &portable) {
    using Halide::Target;
    return select((has(Target::F16C) || has(Target::CUDA)) && !has(Target::OpenCL), hardware, portable);
}
// Halide's cast has the flag nnan, so LLVM folds `x != x` of its result to false. The mask changes no bit, because an f16 uses ten of 23
// mantissa bits. But LLVM does not know that, and forgets the flag.
Expr half_to_float(const Expr &bits) {
    Expr wide = cast(Halide::Float(32), Halide::reinterpret(Halide::Float(16), cast(UInt(16), bits)));
    return from_bits(float_bits(wide) & bits32(0xffffe000u));
}
Expr float_to_half(const Expr &value) { return Halide::reinterpret(UInt(16), cast(Halide::Float(16), value)); }
// True for f32 without its last bits: bf16.
bool is_cut_f32(const FormatSpec &format) { return has_wide_exponent(format) && format.has_sign && format.has_infinity; }
bool has_half_exponent(const FormatSpec &format) { return format.exponent_bits == 5 && format.bias == 15 && format.has_infinity; }

Expr decode_by_bits(const FormatSpec &format, const Expr &magnitude) {
    Expr normal = (magnitude << shift_of(format)) + bits32(rebias_of(format));
    if (has_wide_exponent(format)) return normal;
    // Use an exponent that is larger by one, then subtract the leading one. This is exact, and the result is a normal number or zero.
    uint32_t leading_one = rebias_of(format) + (1u << 23);
    Expr subnormal = strict_sub(from_bits((magnitude << shift_of(format)) + bits32(leading_one)), float32(leading_one));
    return select(magnitude < bits32(1u << format.mantissa_bits), float_bits(subnormal), normal);
}

Expr decode_magnitude(const FormatSpec &format, const Expr &magnitude) {
    Expr portable = decode_by_bits(format, magnitude);
    if (format.exponent_bits > 4) return portable;
    // The pattern is a finite f16 with another bias.
    Expr half = half_to_float(magnitude << (10 - format.mantissa_bits));
    Expr scale = float32(static_cast<uint32_t>(127 + 15 - format.bias) << 23);
    return in_hardware(float_bits(strict_mul(half, scale)), portable);
}

Expr decode_e8m0(const FormatSpec &format, const Expr &code) {
    Expr half_of_smallest_normal = bits32(0x00400000u);
    Expr value = select(code == bits32(0), half_of_smallest_normal, code << shift_of(format));
    return from_bits(select(code == bits32(format.nan_code), bits32(quiet_nan_bits), value));
}

Expr decode_portable(const FormatSpec &format, const Expr &word) {
    Expr magnitude = word & bits32(magnitude_mask(format));
    Expr value = decode_magnitude(format, magnitude);
    // If all exponent bits are ones, mantissa 0 means infinity, and any other mantissa means NaN.
    if (format.max_code < magnitude_mask(format)) {
        value = select(magnitude > bits32(format.max_code), value | bits32(infinity_bits), value);
    }
    value = value | ((word & bits32(sign_bit(format))) << (32 - format.bits()));
    if (!format.has_negative_zero) value = select(word == bits32(format.nan_code), bits32(quiet_nan_bits), value);
    return from_bits(value);
}

// Makes an f16 with another bias from the whole pattern of f8_e4m3fn, with its sign and NaN. Integers of 16 bits need half of the registers
// that decode_portable needs.
Expr decode_e4m3fn(const FormatSpec &format, const Expr &code) {
    const int shift = 10 - format.mantissa_bits;
    const auto pattern = [](uint32_t bits) { return Halide::Internal::make_const(UInt(16), bits); };
    const uint32_t magnitude = magnitude_mask(format) << shift, sign = 0x8000u;
    const Expr wide = cast(Halide::Int(16), Halide::reinterpret(Halide::Int(8), cast(UInt(8), code)));
    const Expr finite = (Halide::reinterpret(UInt(16), wide) << shift) & pattern(magnitude | sign);
    const Expr half = select((finite | pattern(sign)) == pattern(magnitude | sign), finite | pattern(0x7c00u), finite);
    return strict_mul(half_to_float(half), float32(static_cast<uint32_t>(127 + 15 - format.bias) << 23));
}

// Rounds f32 magnitude bits to the format's last place. The exponent keeps f32's bias.
Expr round_normal(const FormatSpec &format, const Expr &magnitude) {
    int shift = shift_of(format);
    // `odd` decides ties. With ties up, only the tie below pattern 1 rounds down, to pattern 0 (e8m0).
    Expr odd = format.ties == Ties::up ? min(magnitude >> shift, bits32(1)) : (magnitude >> shift) & bits32(1);
    return (magnitude + bits32((1u << (shift - 1)) - 1) + odd) >> shift;
}

// Adding 2^(23 + exponent of the last place) lets the hardware round at the right bit, with ties to even.
Expr round_subnormal(const FormatSpec &format, const Expr &magnitude) {
    auto magic = static_cast<uint32_t>(127 + 23 + 1 - format.bias - format.mantissa_bits) << 23;
    return float_bits(strict_add(from_bits(magnitude), float32(magic))) - bits32(magic);
}

// Returns the bit pattern of a magnitude. Values beyond the largest one get `limit_code`.
Expr encode_magnitude(const FormatSpec &format, const Expr &magnitude, uint32_t limit_code) {
    int shift = shift_of(format);
    Expr clamped = min(magnitude, bits32((limit_code << shift) + rebias_of(format)));
    Expr normal = round_normal(format, clamped) - bits32(rebias_of(format) >> shift);
    if (has_wide_exponent(format)) return normal;
    return select(clamped < bits32(rebias_of(format) + (1u << 23)), round_subnormal(format, clamped), normal);
}

// Returns the least f32 magnitude that becomes NaN. With saturation, infinity becomes NaN if the format has NaN but no infinity.
uint32_t first_nan(const FormatSpec &format, Overflow overflow) {
    bool infinity_is_nan = overflow == Overflow::saturate && !format.has_infinity && has_nan(format);
    return infinity_bits + (infinity_is_nan ? 0 : 1);
}

Expr encode_unsigned(const FormatSpec &format, const Expr &bits, Overflow overflow) {
    bool saturates = overflow != Overflow::format;
    Expr code = encode_magnitude(format, bits, saturates ? format.max_code : format.max_code + 1);
    Expr not_positive = Halide::reinterpret(Halide::Int(32), bits) <= 0;
    code = select(not_positive, bits32(saturates ? 0 : format.nan_code), code);
    return select((bits & bits32(magnitude_bits)) >= bits32(first_nan(format, overflow)), bits32(format.nan_code), code);
}

// On CPUs, the instruction rounds finite numbers, including their sign. The rest is computed in 16 bits, like the result.
Expr encode_half(const FormatSpec &format, const Expr &bits, Overflow overflow) {
    const uint32_t limit = format.max_code + (overflow == Overflow::format ? 1 : 0);
    Expr magnitude = bits & bits32(magnitude_bits), sign = bits & bits32(~magnitude_bits);
    Expr limited = min(magnitude, bits32((limit << shift_of(format)) + rebias_of(format)));
    Expr code = float_to_half(from_bits(limited | sign)), nan = cast(UInt(16), bits32(format.nan_code));
    if (overflow == Overflow::format) nan = nan | cast(UInt(16), sign >> 16);
    if (overflow == Overflow::saturate) code = select(magnitude == bits32(infinity_bits), code + cast(UInt(16), 1), code);
    return select(magnitude > bits32(infinity_bits), nan, code);
}

Expr encode_signed(const FormatSpec &format, const Expr &bits, Overflow overflow) {
    bool saturates = overflow != Overflow::format || !has_nan(format);
    Expr magnitude = bits & bits32(magnitude_bits);
    Expr sign = (bits >> (32 - format.bits())) & bits32(sign_bit(format));
    Expr code = encode_magnitude(format, magnitude, format.max_code + (saturates ? 0 : 1));
    if (overflow == Overflow::saturate && format.has_infinity) {
        code = select(magnitude == bits32(infinity_bits), bits32(format.max_code + 1), code);
    }
    Expr is_nan = magnitude >= bits32(first_nan(format, overflow));
    if (!format.has_negative_zero) {
        sign = select(code == bits32(0), bits32(0), sign);
        is_nan = is_nan || code > bits32(format.max_code);
    }
    bool nan_has_sign = format.has_negative_zero && overflow == Overflow::format;
    return nan_has_sign ? select(is_nan, bits32(format.nan_code), code) | sign : select(is_nan, bits32(format.nan_code), code | sign);
}

// Rounds without a bit pattern, with the same result. For f8 this takes half of the instructions; matmuls use it when they round during
// packing. Adding 1.5 * 2^(23 + exponent of the last place) and subtracting it again lets the hardware round there. Ties go to even for
// both signs.
Expr round_in_place(const FormatSpec &format, const Expr &value, Overflow overflow) {
    Expr bits = float_bits(value), magnitude = bits & bits32(magnitude_bits), sign = bits & bits32(~magnitude_bits);
    Expr clamped = min(magnitude, bits32((format.max_code << shift_of(format)) + rebias_of(format)));
    Expr exponent = max(clamped & bits32(infinity_bits), bits32(rebias_of(format) + (1u << 23)));
    Expr magic = from_bits(exponent + bits32((static_cast<uint32_t>(shift_of(format)) << 23) | 0x00400000u));
    Expr rounded = float_bits(strict_sub(strict_add(from_bits(clamped), magic), magic));
    if (overflow == Overflow::saturate && format.has_infinity) {
        rounded = select(magnitude == bits32(infinity_bits), magnitude, rounded);
    }
    return from_bits(select(magnitude >= bits32(first_nan(format, overflow)), bits32(quiet_nan_bits), rounded | sign));
}

// Finite numbers beyond the largest one become the largest; with Overflow::clip, infinities too. NaN stays.
Expr limited(const FormatSpec &format, const Expr &bits, Overflow overflow) {
    if (overflow == Overflow::format) return bits;
    Expr magnitude = bits & bits32(magnitude_bits), sign = bits & bits32(~magnitude_bits);
    Expr within = min(magnitude, bits32((format.max_code << shift_of(format)) + rebias_of(format))) | sign;
    return select(magnitude < bits32(infinity_bits + (overflow == Overflow::clip ? 1 : 0)), within, bits);
}

// The instructions clip and encode NaN as 0x7f.
Expr encode_e4m3(const FormatSpec &format, const Expr &bits, Overflow overflow) {
    Expr magnitude = bits & bits32(magnitude_bits);
    if (overflow == Overflow::clip) return device_op(DeviceOp::f32_to_e4m3, bits);
    if (overflow == Overflow::saturate) {
        return device_op(DeviceOp::f32_to_e4m3, select(magnitude == bits32(infinity_bits), bits32(quiet_nan_bits), bits));
    }
    Expr nan = bits32(format.nan_code) | ((bits >> 24) & bits32(sign_bit(format)));
    return select(magnitude > bits32(0x43e80000u), nan, device_op(DeviceOp::f32_to_e4m3, bits)); // 464, half a unit above the largest
}

Expr encode_e5m2(const FormatSpec &format, const Expr &bits, Overflow overflow) {
    Expr magnitude = bits & bits32(magnitude_bits), sign = (bits >> 24) & bits32(sign_bit(format));
    Expr is_nan = magnitude > bits32(infinity_bits), finite = device_op(DeviceOp::f32_to_e5m2, bits);
    if (overflow == Overflow::clip) return select(is_nan, bits32(format.nan_code), finite);
    // With Overflow::format, half a unit above the largest number becomes infinity: 61440.
    Expr is_infinite = magnitude >= bits32(overflow == Overflow::format ? 0x47700000u : infinity_bits);
    Expr nan = overflow == Overflow::format ? bits32(format.nan_code) | sign : bits32(format.nan_code);
    return select(is_nan, nan, is_infinite, bits32(format.max_code + 1) | sign, finite);
}

// Returns the code by CUDA's instructions; undefined if there is none for the format.
Expr encode_by_instruction(const FormatSpec &format, const Expr &bits, Overflow overflow) {
    switch (format.dtype) {
    case Dtype::bf16: return device_op(DeviceOp::f32_to_bf16, limited(format, bits, overflow));
    case Dtype::f16: return device_op(DeviceOp::f32_to_f16, limited(format, bits, overflow));
    case Dtype::f8_e4m3fn: return encode_e4m3(format, bits, overflow);
    case Dtype::f8_e5m2: return encode_e5m2(format, bits, overflow);
    default: return {};
    }
}

} // namespace

Halide::Type storage_type(Dtype dtype) {
    int bits = bits_of(dtype);
    if (is_signed(dtype)) return Halide::Int(bits);
    if (is_unsigned(dtype)) return UInt(bits);
    return bits >= 32 ? Halide::Float(bits) : UInt(bits);
}

Expr decode(const FormatSpec &format, const Expr &code) {
    if (format.bits() == 32) return code;
    Expr word = cast(UInt(32), code);
    if (!format.has_subnormals) return decode_e8m0(format, word);
    if (is_cut_f32(format)) return from_bits(word << shift_of(format));
    if (format.dtype == Dtype::f8_e4m3fn) {
        const Expr value = in_hardware(decode_e4m3fn(format, code), decode_portable(format, word));
        if (!may_be_device_op(word)) return value;
        return from_bits(select(has(Halide::Target::CUDA), device_op(DeviceOp::e4m3_to_f32, word), float_bits(value)));
    }
    if (!has_half_exponent(format)) return decode_portable(format, word);
    const Expr half = word << (10 - format.mantissa_bits), value = in_hardware(half_to_float(half), decode_portable(format, word));
    if (!may_be_device_op(word)) return value;
    return from_bits(select(has(Halide::Target::CUDA), device_op(DeviceOp::f16_to_f32, half), float_bits(value)));
}

Expr decode(Dtype dtype, const Expr &code) { return decode(format_of(dtype), code); }

Expr encode(const FormatSpec &format, const Expr &value, Overflow overflow) {
    if (format.bits() == 32) return value;
    internal_check(format.ties == Ties::even || has_wide_exponent(format), "encode: ties up need the exponents of f32");
    Expr bits = float_bits(value);
    Expr code = format.has_sign ? encode_signed(format, bits, overflow) : encode_unsigned(format, bits, overflow);
    const Halide::Type type = UInt(format.bits() > 8 ? 16 : 8);
    if (format.mantissa_bits == 10 && has_half_exponent(format)) {
        code = select(has(Halide::Target::F16C) && !has(Halide::Target::CUDA) && !has(Halide::Target::OpenCL),
                      encode_half(format, bits, overflow), cast(type, code));
    }
    const Expr by_instruction = may_be_device_op(bits) ? encode_by_instruction(format, bits, overflow) : Expr();
    if (!by_instruction.defined()) return cast(type, code);
    return select(has(Halide::Target::CUDA), cast(type, by_instruction), cast(type, code));
}

Expr encode(Dtype dtype, const Expr &value, Overflow overflow) { return encode(format_of(dtype), value, overflow); }

Expr exact_bf16(const Expr &value) { return Halide::reinterpret(Halide::BFloat(16), cast(UInt(16), float_bits(value) >> 16)); }

Expr decode_bf16(Dtype dtype, const Expr &code) {
    const FormatSpec &format = format_of(dtype);
    internal_check(format.mantissa_bits <= 7, "decode_bf16: " + std::string(to_string(dtype)) + " does not fit");
    return dtype == Dtype::bf16 ? Halide::reinterpret(Halide::BFloat(16), code) : exact_bf16(decode(format, code));
}

Expr round_to(Dtype dtype, const Expr &value, Overflow overflow) {
    const FormatSpec &format = format_of(dtype);
    const Expr by_code = decode(format, encode(format, value, overflow));
    const bool is_f8 = format.has_sign && format.has_negative_zero && format.has_subnormals && format.bits() == 8;
    if (!is_f8 || overflow == Overflow::format) return by_code;
    return select(has(Halide::Target::CUDA), by_code, round_in_place(format, value, overflow));
}

} // namespace scalide
