#include "expr/reduced_functions.h"
#include "ir/evaluation.h"
#include "lower/halide/strict.h"
#include "lower/math/elementwise_rows.h"
#include <algorithm>

// The forms of functions that expr/reduced_functions.h describes, as Exprs.

namespace scalide {

using Halide::Expr;

namespace {

struct ExprArithmetic {
    using Number = Expr;
    static Expr number(double value) { return Expr(static_cast<float>(value)); }
    static Expr add(const Expr &a, const Expr &b) { return strict_add(a, b); }
    static Expr sub(const Expr &a, const Expr &b) { return strict_sub(a, b); }
    static Expr mul(const Expr &a, const Expr &b) { return strict_mul(a, b); }
    static Expr div(const Expr &a, const Expr &b) { return strict_div(a, b); }
    static Expr min(const Expr &a, const Expr &b) { return Halide::min(a, b); }
    static Expr clamp(const Expr &x, const Expr &low, const Expr &high) { return Halide::clamp(x, low, high); }
    static Expr magnitude(const Expr &x) { return from_bits(magnitude_bits(x)); }
    static Expr is_negative(const Expr &x) { return sign_bit(x) != bits32(0); }
    static Expr is_nan(const Expr &x) { return scalide::is_nan(x); }
    static Expr select(const Expr &condition, const Expr &a, const Expr &b) { return Halide::select(condition, a, b); }
    static Expr bits(const Expr &x) { return Halide::reinterpret<int32_t>(x); }
    static Expr from_bits(const Expr &bits) { return Halide::reinterpret<float>(bits); }
    static Expr polynomial(const Expr &x, Coefficients coefficients) { return strict(scalide::polynomial(x, coefficients)); }
};

using ReducedExprs = ReducedFunctions<ExprArithmetic>;

struct ReducedFunction {
    std::string_view name;
    Expr (ReducedExprs::*lower)(const Expr &x) const;
};

constexpr ReducedFunction functions[] = {{"exp", &ReducedExprs::exp},           {"exp2", &ReducedExprs::exp2},
                                         {"logistic", &ReducedExprs::logistic}, {"tanh", &ReducedExprs::tanh},
                                         {"erf", &ReducedExprs::erf},           {"erfc", &ReducedExprs::erfc}};

} // namespace

Expr lower_reduced(std::string_view op, const ElementwiseCall &call) {
    const std::optional<int> bits = bits_of_accuracy(call.attributes);
    if (!bits) return {};
    const auto found = std::ranges::find(functions, op, &ReducedFunction::name);
    internal_check(found != std::end(functions) && call.result == Dtype::f32, std::string(op) + " has no reduced form");
    return (ReducedExprs(reduced_form(*bits)).*(found->lower))(call.value(0));
}

} // namespace scalide
