#include "lower/halide/device_ops.h"
#include "lower/halide/strict.h"
#include "lower/math/elementwise_rows.h"
#include <algorithm>
#include <cmath>

// f32 functions by the instructions of a CUDA GPU. emit/device_functions.cpp has their text.

namespace scalide {

using Halide::Expr;

namespace {

/// The form of a function in each arithmetic. A rounded form is used where its error is far below a unit of the rounded format.
struct DeviceFunctionForms {
    std::string_view name;
    DeviceOp device, rounded, stored;
};

constexpr DeviceFunctionForms functions[] = {
    {"exp", DeviceOp::exp, DeviceOp::exp_rounded, DeviceOp::exp_rounded},
    {"exp2", DeviceOp::exp2, DeviceOp::exp2, DeviceOp::exp2},
    {"expm1", DeviceOp::expm1, DeviceOp::expm1, DeviceOp::expm1},
    {"logistic", DeviceOp::logistic, DeviceOp::logistic_rounded, DeviceOp::logistic_rounded},
    {"tanh", DeviceOp::tanh, DeviceOp::tanh, DeviceOp::tanh_stored},
    {"erf", DeviceOp::erf, DeviceOp::erf, DeviceOp::erf},
    {"erfc", DeviceOp::erfc, DeviceOp::erfc, DeviceOp::erfc},
    {"log", DeviceOp::log, DeviceOp::log, DeviceOp::log},
    {"log2", DeviceOp::log2, DeviceOp::log2, DeviceOp::log2},
    {"sqrt", DeviceOp::sqrt, DeviceOp::sqrt, DeviceOp::sqrt},
    {"rsqrt", DeviceOp::rsqrt, DeviceOp::rsqrt, DeviceOp::rsqrt},
};

Expr apply(DeviceOp op, const Expr &x) { return from_bits(device_op(op, float_bits(x))); }

/// True if a constant and its reciprocal are normal numbers.
bool has_normal_reciprocal(const Expr &x) {
    const auto value = Halide::Internal::as_const_float(x);
    return value && std::fabs(*value) >= 0x1p-125 && std::fabs(*value) <= 0x1p125;
}

/// (a s) / (b s), where s depends on b only. The reciprocal is computed once for all elements that a number divides.
Expr quotient(const Expr &a, const Expr &b) {
    if (has_normal_reciprocal(b)) return strict_mul(a, constant_like(b, 1 / *Halide::Internal::as_const_float(b)));
    if (!may_be_device_op(b)) return {};
    const Expr scale = apply(DeviceOp::divisor_scale, b), inverse = apply(DeviceOp::reciprocal, strict_mul(b, scale));
    return strict_mul(Halide::Internal::is_const_one(a) ? scale : strict_mul(a, scale), inverse);
}

/// Powers of small exponents, without f64.
Expr power(const Expr &x, int exponent) {
    constexpr int most = 4;
    if (exponent < 3 || exponent > most) return {};
    Expr square = strict_mul(x, x);
    return strict_mul(square, exponent == 3 ? x : square);
}

} // namespace

Expr lower_on_device(std::string_view op, const ElementwiseCall &call) {
    if (call.arithmetic == Arithmetic::exact || call.result != Dtype::f32) return {};
    const Expr x = call.value(0);
    if (op == "div") return quotient(x, call.value(1));
    if (op == "integer_pow") return power(x, integer_attribute(call, "y"));
    const auto found = std::ranges::find(functions, op, &DeviceFunctionForms::name);
    if (found == std::end(functions) || !may_be_device_op(x)) return {};
    return apply(call.arithmetic == Arithmetic::device    ? found->device
                 : call.arithmetic == Arithmetic::rounded ? found->rounded
                                                          : found->stored,
                 x);
}

} // namespace scalide
