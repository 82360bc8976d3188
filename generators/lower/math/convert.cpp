#include "lower/formats/formats.h"
#include "lower/halide/strict.h"
#include "lower/math/elementwise.h"

#include <cmath>

namespace scalide {

using Halide::cast;
using Halide::Expr;
using Halide::select;

namespace {

// Truncates to f32 and sets the last bit if anything was lost. Rounding the result to fewer bits then equals rounding the f64 directly.
Expr round_to_odd(const Expr &x) {
    Expr nearest = cast<float>(x), back = cast<double>(nearest);
    Expr too_large = strict_lt(from_bits(magnitude_bits(x)), from_bits(magnitude_bits(back)));
    Expr bits = float_bits(nearest) - select(too_large, bits32(1), bits32(0));
    return from_bits(select(strict_eq(back, x) || scalide::is_nan(x), float_bits(nearest), bits | bits32(1)));
}

// Values that are too large are clamped to the largest float below the limit. It truncates to the largest integer, or a select replaces it.
Expr float_to_integer(const Expr &x, Dtype result) {
    const IntegerRange range = range_of(result);
    const double limit = range.largest + 1;
    const double below = x.type().bits() == 64 ? std::nextafter(limit, 0.0) : std::nextafter(static_cast<float>(limit), 0.0f);
    Halide::Type type = storage_type(result);
    Expr bounded = Halide::clamp(x, constant_like(x, range.smallest), constant_like(x, below));
    return select(scalide::is_nan(x), Halide::Internal::make_const(type, 0), strict_le(constant_like(x, limit), x), type.max(),
                  cast(type, bounded));
}

// f32, f64 and integers are returned unchanged, bool as i32.
Expr to_number(const ElementwiseOperand &operand) {
    if (is_narrow(operand.dtype)) return decode(operand.dtype, operand.value);
    return operand.dtype == Dtype::boolean ? cast<int32_t>(operand.value) : operand.value;
}

// Returns an integer as f64. If an i64 has more than 53 bits, its last bits are replaced by one bit that is set if one of them was set.
// Rounding the result to at most 51 bits then equals rounding the integer directly.
Expr integer_to_odd(const Expr &x) {
    if (x.type() != Halide::Int(64)) return cast<double>(x);
    const Expr limit = Halide::Internal::make_const(x.type(), int64_t{1} << 53), rest = Halide::Internal::make_const(x.type(), 2047);
    const Expr shortened = (x & ~rest) | cast<int64_t>((x & rest) != 0) * Halide::Internal::make_const(x.type(), 1024);
    return cast<double>(select(-limit <= x && x <= limit, x, shortened));
}

Expr to_truth(const Expr &number) {
    return number.type().is_float() ? !strict_eq(number, constant_like(number, 0)) : number != Halide::Internal::make_zero(number.type());
}

} // namespace

Expr convert(const ElementwiseOperand &operand, Dtype result, Overflow overflow) {
    if (operand.dtype == result) return operand.value;
    Expr number = to_number(operand);
    if (result == Dtype::boolean) return to_truth(number);
    if (is_integer(result)) return number.type().is_float() ? float_to_integer(number, result) : cast(storage_type(result), number);
    if (result == Dtype::f64 && number.type() == Halide::Float(32)) return widened(number);
    if (result == Dtype::f32 && number.type() == Halide::Float(64)) return narrowed(number);
    if (!is_narrow(result)) return cast(Halide::Float(bits_of(result)), number);
    bool is_exact_f32 = number.type() == Halide::Float(32);
    return encode(result, is_exact_f32 ? number : round_to_odd(number.type().is_float() ? cast<double>(number) : integer_to_odd(number)),
                  overflow);
}

} // namespace scalide
