#pragma once
#include "expr/error.h"
#include "lower/math/elementwise.h"

// The rows of elementwise_lowerings(), by file. Each row is in the file of its function. A new file needs a line below and one in
// elementwise.cpp.

namespace scalide {

using ElementwiseRows = std::span<const ElementwiseLowering>;

ElementwiseRows arithmetic_rows();
ElementwiseRows rounding_rows();
ElementwiseRows exponential_rows();
ElementwiseRows logarithm_rows();
ElementwiseRows error_function_rows();
ElementwiseRows trigonometric_rows();
ElementwiseRows arc_rows();
ElementwiseRows hyperbolic_rows();
ElementwiseRows gamma_rows();
ElementwiseRows zeta_rows();
ElementwiseRows incomplete_rows();
ElementwiseRows bessel_rows();

/// Returns an f32 operation by the instructions of a CUDA GPU. Undefined if it is computed as on other targets.
Halide::Expr lower_on_device(std::string_view op, const ElementwiseCall &call);

/// Returns the reduced form of a function with the attribute `accuracy`. Undefined without this attribute.
Halide::Expr lower_reduced(std::string_view op, const ElementwiseCall &call);

// These adapters let a row call a function of Exprs.

using Unary = Halide::Expr (*)(const Halide::Expr &);
using Binary = Halide::Expr (*)(const Halide::Expr &, const Halide::Expr &);
using Ternary = Halide::Expr (*)(const Halide::Expr &, const Halide::Expr &, const Halide::Expr &);

template<Unary function>
Halide::Expr one(const ElementwiseCall &call) {
    return function(call.value(0));
}

template<Binary function>
Halide::Expr two(const ElementwiseCall &call) {
    return function(call.value(0), call.value(1));
}

inline void require_f32(const Halide::Expr &x) { internal_check(x.type() == Halide::Float(32), "this function is lowered in f32 only"); }

template<Unary function>
Halide::Expr f32_one(const ElementwiseCall &call) {
    require_f32(call.value(0));
    return function(call.value(0));
}

template<Binary function>
Halide::Expr f32_two(const ElementwiseCall &call) {
    require_f32(call.value(0));
    return function(call.value(0), call.value(1));
}

template<Ternary function>
Halide::Expr f32_three(const ElementwiseCall &call) {
    require_f32(call.value(0));
    return function(call.value(0), call.value(1), call.value(2));
}

/// Integers need no rounding to whole numbers, so `function` is applied to floats only.
template<Unary function>
Halide::Expr whole(const Halide::Expr &x) {
    return x.type().is_float() ? function(x) : x;
}

inline int integer_attribute(const ElementwiseCall &call, const char *name) {
    return static_cast<int>(to_number(call.attributes.at(name)));
}

} // namespace scalide
