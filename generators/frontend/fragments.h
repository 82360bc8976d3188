#pragma once
#include "frontend/tensor.h"
#include "ir/text.h"

/// Operators by name, for program fragments of this folder. Users have the generated functions of `scalide/operators.h` instead.
namespace scalide::fragments {

inline Tensor sqrt(const Operand &x) { return apply("sqrt", {x}); }
inline Tensor rsqrt(const Operand &x) { return apply("rsqrt", {x}); }
inline Tensor square(const Operand &x) { return apply("square", {x}); }
inline Tensor abs(const Operand &x) { return apply("abs", {x}); }
inline Tensor sign(const Operand &x) { return apply("sign", {x}); }
inline Tensor cos(const Operand &x) { return apply("cos", {x}); }
inline Tensor floor(const Operand &x) { return apply("floor", {x}); }
inline Tensor pow(const Operand &x, const Operand &y) { return apply("pow", {x, y}); }
inline Tensor max(const Operand &a, const Operand &b) { return apply("max", {a, b}); }
inline Tensor min(const Operand &a, const Operand &b) { return apply("min", {a, b}); }
inline Tensor eq(const Operand &a, const Operand &b) { return apply("eq", {a, b}); }
inline Tensor logical_and(const Operand &a, const Operand &b) { return apply("and", {a, b}); }
inline Tensor logical_or(const Operand &a, const Operand &b) { return apply("or", {a, b}); }
inline Tensor logical_not(const Operand &a) { return apply("not", {a}); }

/// Returns `yes` where the condition is true, else `no`.
inline Tensor where(const Tensor &condition, const Operand &yes, const Operand &no) { return apply("select_n", {condition, no, yes}); }

/// Returns x in another dtype. Adds no operator if x has it.
inline Tensor to(const Tensor &x, Dtype dtype) {
    return x.dtype() == dtype ? x : apply("convert_element_type", {x}, {{"dtype", std::string(to_string(dtype))}});
}

/// Returns a scalar.
inline Tensor scalar(double value, Dtype dtype = Dtype::f32) {
    return apply("full", {}, {{"shape", to_attribute(Extents())}, {"fill_value", value}, {"dtype", std::string(to_string(dtype))}});
}

/// Reduces all axes, or these.
inline Tensor reduce(const std::string &op, const Tensor &x) { return apply(op, {x}, {{"axes", to_attribute(all_axes)}}); }
inline Tensor reduce(const std::string &op, const Tensor &x, const std::vector<int64_t> &axes) {
    return apply(op, {x}, {{"axes", to_attribute(axes)}});
}

/// Puts an axis of extent 1 at this place.
inline Tensor expand(const Tensor &x, int64_t axis) {
    return apply("expand_dims", {x}, {{"dimensions", to_attribute(std::vector<int64_t>{axis})}});
}

/// Returns the product of matrices that contracts these axes.
inline Tensor contract(const Tensor &a, const Tensor &b, int64_t axis_of_a, int64_t axis_of_b) {
    return apply("dot_general", {a, b},
                 {{"contract", to_attribute(AxisPairs({axis_of_a}, {axis_of_b}))}, {"batch", to_attribute(no_axis_pairs)}});
}

/// Returns a bool matrix that is true on its diagonal.
inline Tensor identity_mask(const Extent &extent) {
    const auto numbers = [&](int64_t axis) {
        return apply("iota", {}, {{"dtype", "i32"}, {"shape", to_attribute(Extents{extent, extent})}, {"dimension", axis}});
    };
    return eq(numbers(0), numbers(1));
}

/// Returns count + 1, and the largest i32 for itself, as optax.safe_increment.
inline Tensor safe_increment(const Tensor &count) { return min(count, INT32_MAX - 1) + 1; }

} // namespace scalide::fragments
