#include "lower/elementwise.h"
#include "lower/formats.h"
#include "lower/strict.h"

namespace scalide {

using Halide::cast;
using Halide::Expr;
using Halide::select;

namespace {

bool is_narrow(Dtype dtype) { return is_float(dtype) && size_of(dtype) <= 2; }

// Towards zero, with the last bit set where anything was lost: rounding this to fewer bits rounds the f64 itself.
Expr round_to_odd(const Expr &x) {
    Expr nearest = cast<float>(x), back = cast<double>(nearest);
    Expr too_large = strict_lt(from_bits(magnitude_bits(x)), from_bits(magnitude_bits(back)));
    Expr bits = float_bits(nearest) - select(too_large, bits32(1), bits32(0));
    return from_bits(select(strict_eq(back, x) || scalide::is_nan(x), float_bits(nearest), bits | bits32(1)));
}

Expr float_to_integer(const Expr &x) {
    // The largest f32 below 2^31; every f64 between is cut to it by the comparison.
    Expr bounded = Halide::clamp(x, constant_like(x, -2147483648.0), constant_like(x, 2147483520.0));
    bounded = x.type().bits() == 64 ? Halide::clamp(x, Expr(-2147483648.0), Expr(2147483647.0)) : bounded;
    Expr too_large = strict_le(constant_like(x, 2147483648.0), x);
    return select(scalide::is_nan(x), 0, too_large, Halide::Internal::make_const(Halide::Int(32), 2147483647), cast<int32_t>(bounded));
}

// f32, f64 and i32 as they are, bool as i32.
Expr to_number(const ElementwiseOperand &operand) {
    if (is_narrow(operand.dtype)) return decode(operand.dtype, operand.value);
    return operand.dtype == Dtype::boolean ? cast<int32_t>(operand.value) : operand.value;
}

Expr to_truth(const Expr &number) { return number.type().is_float() ? !strict_eq(number, constant_like(number, 0)) : number != 0; }

} // namespace

Expr convert(const ElementwiseOperand &operand, Dtype result, Overflow overflow) {
    if (operand.dtype == result) return operand.value;
    Expr number = to_number(operand);
    if (result == Dtype::boolean) return to_truth(number);
    if (result == Dtype::i32) return number.type().is_float() ? float_to_integer(number) : number;
    if (!is_narrow(result)) return cast(Halide::Float(8 * size_of(result)), number);
    bool is_exact_f32 = number.type() == Halide::Float(32);
    return encode(result, is_exact_f32 ? number : round_to_odd(cast<double>(number)), overflow);
}

} // namespace scalide
