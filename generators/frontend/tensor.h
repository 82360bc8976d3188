#pragma once
#include "rulebook/builder.h"
#include <functional>
#include <initializer_list>

namespace scalide {

class Numerics;
template<typename T>
class GeneratorParam;

/// A tensor in the program under construction. It has no elements: operations on it add operators to the program. A copy refers to the same
/// value, and an assignment makes a name refer to another value. Operands broadcast as in NumPy.
class Tensor {
public:
    /// Makes an empty tensor. Assign it before you use it.
    Tensor() = default;
    /// Refers to a value of the program under construction.
    explicit Tensor(ValueId value);

    /// Returns the dtype of the elements.
    Dtype dtype() const;
    /// Returns the extents. An extent is a number or an expression over symbols, such as 2*b.
    const Extents &shape() const;
    /// Returns the number of axes.
    int rank() const { return static_cast<int>(shape().size()); }
    /// Returns the number of the value in the program. Throws UserError if the tensor is empty or belongs to another program. Inside a
    /// function that reduce() calls, tensors from outside belong to another program.
    ValueId value() const;

    /// Returns an object that changes how this tensor is stored: `h.numerics().rescale("max", 224).store(f8_e4m3fn)`. The change affects
    /// every later use of this tensor.
    Numerics numerics();

protected:
    ValueId value_ = -1;
    int program_ = 0; ///< the number of the tracer
};

/// Changes how one tensor is stored. Tensor::numerics() returns it.
class Numerics {
public:
    explicit Numerics(Tensor &tensor) : tensor_(tensor) {}
    /// Moves a power of two from the data to the scale, so that the norm of the data is in [to, 2 * to). `norm` is "max" (largest
    /// magnitude), "l1" (mean magnitude) or "l2" (root mean square).
    Numerics &rescale(const std::string &norm, double to = 1);
    /// Rounds the value to a dtype. The gradient passes unchanged.
    Numerics &store(Dtype dtype);

private:
    Tensor &tensor_;
};

/// An operand of an operator: a tensor, a number or a GeneratorParam. A number gets the dtype of the other operands.
struct Operand {
    Operand(const Tensor &tensor) : tensor(tensor) {}
    Operand(double number) : number(number), is_number(true) {}
    template<typename T>
    Operand(const GeneratorParam<T> &param) : Operand(static_cast<double>(static_cast<T>(param))) {}
    Tensor tensor;
    double number = 0;
    bool is_number = false;
};

/// Pairs of axes of two operands: `dot_general(x, y, {{2}, {0}})` contracts axis 2 of x with axis 0 of y.
struct AxisPairs {
    AxisPairs() = default;
    AxisPairs(std::vector<int64_t> first, std::vector<int64_t> second) : first(std::move(first)), second(std::move(second)) {}
    std::vector<int64_t> first, second;
    bool operator==(const AxisPairs &) const = default;
};

/// No pairs of axes.
inline const AxisPairs no_axis_pairs;

/// The default value of axes arguments: all axes of the first operand.
inline const std::vector<int64_t> all_axes{INT64_MIN};

Attribute to_attribute(const AxisPairs &pairs);

/// Applies the operator `op` and returns its first result. `scalide/operators.h` has a function for each operator; use apply() for
/// operators whose name you know only when the program is built. The operands of elementwise operators broadcast. Left-out axes mean all
/// axes of the first operand. Throws UserError if the operator is unknown, or if the operands or attributes do not fit its rule.
Tensor apply(const std::string &op, std::vector<Operand> operands, Attributes attributes = {});

/// Applies the operator `op` and returns all its results. Otherwise as apply().
std::vector<Tensor> apply_all(const std::string &op, std::vector<Operand> operands, Attributes attributes = {});

/// Returns a + b elementwise (lax.add). Shapes broadcast as in NumPy; UserError if they do not. The dtypes must be equal.
Tensor operator+(const Operand &a, const Operand &b);

/// Returns a - b elementwise (lax.sub).
Tensor operator-(const Operand &a, const Operand &b);

/// Returns a * b elementwise (lax.mul). For a matrix product use dot().
Tensor operator*(const Operand &a, const Operand &b);

/// Returns a / b elementwise (lax.div).
Tensor operator/(const Operand &a, const Operand &b);

/// Returns -a elementwise (lax.neg).
Tensor operator-(const Tensor &a);

/// Returns the matrix product (lax.dot_general). It contracts the last axis of a with the last axis but one of b, or with the only axis of
/// b. If both operands have more than two axes, the leading axes are batch axes of equal extents. The contracted extents must be equal.
Tensor dot(const Tensor &a, const Tensor &b);

/// Returns a sum of products, as numpy.einsum does: einsum("bij,bjk->bik", {a, b}). Axes with the same letter must have the same extent.
/// A letter that occurs twice in one operand selects the diagonal. '...' means all other axes. Without '->', the result has the letters
/// that occur once, in alphabetical order. Operands are multiplied from the first to the last.
Tensor einsum(const std::string &subscripts, const std::vector<Tensor> &operands);

/// Returns function(x), but the gradient passes to x unchanged (a straight-through estimator).
Tensor map_on_forward(const std::function<Tensor(const Tensor &)> &function, const Tensor &x);

/// Returns x, but the gradient with respect to x becomes function(gradient). The function must return the dtype and shape of x.
Tensor map_on_backward(const std::function<Tensor(const Tensor &)> &function, const Tensor &x);

/// Returns the gradient of `loss`, a scalar, with respect to w (jax.grad). It has the dtype and shape of w.
Tensor grad(const Tensor &loss, const Tensor &w);

/// Returns the gradients of `loss` with respect to several tensors. One call is cheaper than one call for each tensor.
std::vector<Tensor> grad(const Tensor &loss, const std::vector<Tensor> &ws);

/// Names a part of the program, as jax.named_scope does. Operators that are added while the object lives have this scope. Scopes nest:
/// "mlp/0". Rules of a precision policy can match scopes.
class Scope {
public:
    explicit Scope(const std::string &name);
    ~Scope();
    Scope(const Scope &) = delete;

private:
    std::string outer_;
};

} // namespace scalide
