#include "lower/formats/integers.h"
#include "expr/error.h"
#include "lower/halide/strict.h"

#include <functional>

namespace scalide::integers {

using Halide::cast;
using Halide::Expr;
using Halide::select;

namespace {

Expr number(const Expr &like, int64_t value) { return Halide::Internal::make_const(like.type(), value); }

// Signed 32-bit overflow is undefined in Halide, and Halide merges two conversions if a converted float is read as an unsigned word. 64-bit
// arithmetic does not overflow, and LLVM narrows it again.
template<typename Operation>
Expr wrapping(Operation operation, const Expr &a, const Expr &b) {
    if (a.type() != Halide::Int(32)) return operation(a, b);
    return cast<int32_t>(operation(cast<int64_t>(a), cast<int64_t>(b)));
}

Expr as_code(const Expr &x, halide_type_code_t code) { return Halide::reinterpret(x.type().with_code(code), x); }
Expr as_unsigned(const Expr &x) { return as_code(x, Halide::Type::UInt); }

// a / b rounded towards zero, for b != 0. CPUs have no integer vector division. The quotient of two n-bit integers differs from the next
// integer by at least 2^-n, relatively. So f32 is precise enough for 16 bits, and f64 for 32.
Expr quotient(const Expr &a, const Expr &b) {
    Halide::Type wide = Halide::Float(a.type().bits() <= 16 ? 32 : 64);
    return cast(a.type(), Halide::trunc(strict_div(cast(wide, a), cast(wide, b))));
}

// Returns 1 in place of a divisor for which the quotient does not exist or does not fit.
Expr safe_divisor(const Expr &a, const Expr &b) {
    Expr unsafe = b == number(b, 0);
    if (a.type().is_int()) unsafe = unsafe || (b == number(b, -1) && a == a.type().min());
    return select(unsafe, number(b, 1), b);
}

using Shift = Expr (*)(const Expr &, const Expr &);

// Returns the shifted bits, or `past` if the distance reaches the width. LLVM does not define such a shift.
Expr shift(Shift operation, const Expr &x, const Expr &distance, const Expr &past) {
    Expr steps = as_unsigned(distance), last = number(steps, steps.type().bits() - 1);
    Expr shifted = operation(x, Halide::min(steps, last));
    return select(steps <= last, as_code(shifted, past.type().code()), past);
}

Expr to_the_left(const Expr &x, const Expr &steps) { return x << steps; }
Expr to_the_right(const Expr &x, const Expr &steps) { return x >> steps; }

} // namespace

Expr add(const Expr &a, const Expr &b) { return wrapping(std::plus<Expr>(), a, b); }
Expr sub(const Expr &a, const Expr &b) { return wrapping(std::minus<Expr>(), a, b); }
Expr mul(const Expr &a, const Expr &b) { return wrapping(std::multiplies<Expr>(), a, b); }

Expr div(const Expr &a, const Expr &b) { return select(b == number(b, 0), ~number(b, 0), quotient(a, safe_divisor(a, b))); }

Expr rem(const Expr &a, const Expr &b) {
    Expr divisor = safe_divisor(a, b), rest = sub(a, mul(quotient(a, divisor), divisor));
    return select(b == number(b, 0), a, rest);
}

Expr neg(const Expr &x) { return sub(number(x, 0), x); }

Expr abs(const Expr &x) { return x.type().is_uint() ? x : select(x < number(x, 0), neg(x), x); }

Expr sign(const Expr &x) { return Halide::clamp(x, number(x, x.type().is_uint() ? 0 : -1), number(x, 1)); }

Expr integer_pow(Expr x, int power) {
    internal_check(power >= 0, "integer_pow of integers needs a power >= 0");
    Expr product = number(x, 1);
    for (; power != 0; power >>= 1) {
        if (power & 1) product = mul(product, x);
        x = mul(x, x);
    }
    return product;
}

Expr shift_left(const Expr &x, const Expr &distance) { return shift(to_the_left, as_unsigned(x), distance, number(x, 0)); }

Expr shift_right_logical(const Expr &x, const Expr &distance) { return shift(to_the_right, as_unsigned(x), distance, number(x, 0)); }

Expr shift_right_arithmetic(const Expr &x, const Expr &distance) {
    Expr signed_x = as_code(x, Halide::Type::Int), sign = signed_x >> number(as_unsigned(x), x.type().bits() - 1);
    return shift(to_the_right, signed_x, distance, as_code(sign, x.type().code()));
}

Expr population_count(const Expr &x) { return Halide::popcount(x); }

Expr clz(const Expr &x) {
    Expr zero = number(x, 0), width = number(x, x.type().bits());
    return select(x == zero, width, Halide::count_leading_zeros(x));
}

} // namespace scalide::integers
