#include "lower/strict.h"

namespace scalide {

using Halide::Expr;
using Halide::Internal::Call;

namespace {

Expr intrinsic(Call::IntrinsicOp op, const Expr &a, const Expr &b, const Halide::Type &type) {
    return Call::make(type, op, {a, b}, Call::PureIntrinsic);
}

} // namespace

Expr strict_add(const Expr &a, const Expr &b) { return intrinsic(Call::strict_add, a, b, a.type()); }
Expr strict_sub(const Expr &a, const Expr &b) { return intrinsic(Call::strict_sub, a, b, a.type()); }
Expr strict_mul(const Expr &a, const Expr &b) { return intrinsic(Call::strict_mul, a, b, a.type()); }
Expr strict_div(const Expr &a, const Expr &b) { return intrinsic(Call::strict_div, a, b, a.type()); }
Expr strict_eq(const Expr &a, const Expr &b) { return intrinsic(Call::strict_eq, a, b, Halide::Bool()); }
Expr strict_lt(const Expr &a, const Expr &b) { return intrinsic(Call::strict_lt, a, b, Halide::Bool()); }
Expr strict_le(const Expr &a, const Expr &b) { return intrinsic(Call::strict_le, a, b, Halide::Bool()); }

Expr float_bits(const Expr &x) { return Halide::reinterpret(x.type().with_code(Halide::Type::UInt), x); }
Expr from_bits(const Expr &bits) { return Halide::reinterpret(bits.type().with_code(Halide::Type::Float), bits); }
Expr bits32(uint32_t bits) { return Halide::Internal::make_const(Halide::UInt(32), static_cast<uint64_t>(bits)); }
Expr float32(uint32_t bits) { return from_bits(bits32(bits)); }

} // namespace scalide
