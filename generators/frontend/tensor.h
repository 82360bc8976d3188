#pragma once
#include "rulebook/builder.h"
#include <array>
#include <concepts>
#include <functional>
#include <initializer_list>
#include <source_location>

namespace scalide {

class Numerics;
template<typename T>
class GeneratorParam;

/// One extent of a shape: a number, the name of a symbol ("b"), an expression over symbols, or a GeneratorParam.
struct Dimension {
    template<std::integral T>
    Dimension(T value) : extent(static_cast<int64_t>(value)) {}
    Dimension(const char *symbol) : extent(Extent::symbol(symbol)) {}
    Dimension(Extent value) : extent(std::move(value)) {}
    template<typename T>
    Dimension(const GeneratorParam<T> &param) : extent(static_cast<int64_t>(static_cast<T>(param))) {}
    Extent extent;
};

/// A group of ranks, which exchange arrays: `const RankGroup data("data");` in generate(). The number of its ranks is the symbol of this
/// name, so `{64 * data.extent, 10}` is a shape. The application joins the group when it runs the program (scalide/groups.h).
struct RankGroup {
    /// Declares the group. Throws UserError outside of generate(), and in the body of a loop or in a branch.
    explicit RankGroup(const std::string &name, const std::source_location &where = std::source_location::current());
    Extent extent;
    bool operator==(const RankGroup &) const = default;
};

/// All groups of the program. A policy also shares its scales between all of them.
inline const std::vector<RankGroup> all_groups = {};

Attribute to_attribute(const std::vector<RankGroup> &groups);

/// The shape of a declared tensor: `{"b", 64}`.
using Dimensions = std::vector<Dimension>;

/// The shape that an operator takes: `{"b", 64}`, or the shape() of a tensor.
struct ShapeArgument {
    ShapeArgument() = default;
    ShapeArgument(std::initializer_list<Dimension> dimensions) {
        for (const Dimension &dimension : dimensions) extents.push_back(dimension.extent);
    }
    ShapeArgument(const Extents &shape) : extents(shape) {}
    Extents extents;
};

/// A tensor in the program under construction. It has no elements: operations on it add operators to the program. A copy refers to the same
/// value, and an assignment makes a name refer to another value. Operands broadcast as in NumPy. Leave out the last argument of most
/// functions, `where`: it is the line of your source that calls the function. Messages and the column `source` of `explain` show it.
class Tensor {
public:
    /// Makes an empty tensor. Assign it before you use it.
    Tensor() = default;
    /// Refers to a value of the program under construction.
    explicit Tensor(ValueId value);

    /// Returns the dtype of the elements.
    Dtype dtype(const std::source_location &where = std::source_location::current()) const;
    /// Returns the extents. An extent is a number or an expression over symbols, such as 2*b.
    const Extents &shape(const std::source_location &where = std::source_location::current()) const;
    /// Returns the number of axes.
    int rank(const std::source_location &where = std::source_location::current()) const { return static_cast<int>(shape(where).size()); }
    /// Returns the number of the value in the program. Throws UserError if the tensor is empty or belongs to another program. Inside a
    /// function that reduce() calls, tensors from outside belong to another program. The body of a loop and a branch may use them.
    ValueId value() const;

    /// Returns false if the tensor is empty.
    bool is_assigned() const { return value_ >= 0; }

    /// Names this tensor and returns it: `Tensor h = dot(x, w).named("hidden")`. `explain` and traces show the name. If another tensor has
    /// the name, a number is added: hidden1. Throws UserError if the name is empty or if the tensor is an argument of the program.
    Tensor named(const std::string &name, const std::source_location &where = std::source_location::current()) const;

    /// Returns an object that changes how this tensor is stored: `h.numerics().rescale("max", 224).store(f8_e4m3fn)`. The change affects
    /// every later use of this tensor.
    Numerics numerics();

protected:
    friend class Tracer;
    ValueId value_ = -1;
    int program_ = 0;    ///< the number of the tracer
    ValueId state_ = -1; ///< a State, or a copy of it: the argument, the first value of the state
};

/// Changes how one tensor is stored. Tensor::numerics() returns it.
class Numerics {
public:
    explicit Numerics(Tensor &tensor) : tensor_(tensor) {}
    /// Moves a power of two from the data to the scale, so that the norm of the data is in [to, 2 * to). `norm` is "max" (largest
    /// magnitude), "l1" (mean magnitude) or "l2" (root mean square).
    Numerics &rescale(const std::string &norm, double to = 1, const std::source_location &where = std::source_location::current());
    /// Rounds the value to a dtype. The gradient passes unchanged.
    Numerics &store(Dtype dtype, const std::source_location &where = std::source_location::current());

private:
    Tensor &tensor_;
};

/// An operand of an operator: a tensor, a number or a GeneratorParam. A number gets the dtype of the other operands.
struct Operand {
    Operand(const Tensor &tensor, const std::source_location &where = std::source_location::current()) : tensor(tensor), where(where) {}
    Operand(double number, const std::source_location &where = std::source_location::current())
        : number(number), is_number(true), where(where) {}
    template<std::signed_integral T>
    Operand(T number, const std::source_location &where = std::source_location::current())
        : number(static_cast<double>(number)), is_number(true), is_exact(is_exact_in_f64(number)), where(where) {}
    template<typename T>
    Operand(const GeneratorParam<T> &param, const std::source_location &where = std::source_location::current())
        : Operand(static_cast<double>(static_cast<T>(param)), where) {}
    Tensor tensor;
    double number = 0;
    bool is_number = false;
    bool is_exact = true;       ///< false: `number` is an integer that was rounded
    std::source_location where; ///< the expression that contains the operand
};

/// A number or a GeneratorParam that a tensor is compared with. Unlike an Operand, it is never a tensor.
struct Number {
    Number(double value, const std::source_location &where = std::source_location::current()) : operand(value, where) {}
    template<std::signed_integral T>
    Number(T value, const std::source_location &where = std::source_location::current()) : operand(value, where) {}
    template<typename T>
    Number(const GeneratorParam<T> &param, const std::source_location &where = std::source_location::current()) : operand(param, where) {}
    Operand operand;
};

/// A tensor and the place in the source that uses it. It converts from a tensor.
struct TensorUse {
    TensorUse(const Tensor &tensor, const std::source_location &where = std::source_location::current()) : tensor(tensor), where(where) {}
    Tensor tensor;
    std::source_location where;
};

/// Pairs of axes of two operands: `dot_general(x, y, {{2}, {0}})` contracts axis 2 of x with axis 0 of y.
struct AxisPairs {
    AxisPairs() = default;
    AxisPairs(std::vector<int64_t> first, std::vector<int64_t> second) : first(std::move(first)), second(std::move(second)) {}
    std::vector<int64_t> first, second;
    bool operator==(const AxisPairs &) const = default;
};

/// An argument that is true or false. A text is none: "false" would convert to true.
struct Flag {
    template<std::same_as<bool> T>
    Flag(T value) : value(value) {}
    bool value;
};

/// The padding of a window operator: a word, `conv(x, w, {2, 2}, "same")`, or the padding before and after each axis,
/// `conv(x, w, {2, 2}, {{1, 2}, {0, 3}})`.
struct WindowPadding {
    WindowPadding() = default;
    WindowPadding(std::string word) : attribute(std::move(word)) {}
    WindowPadding(const char *word) : attribute(word) {}
    WindowPadding(std::initializer_list<std::pair<int64_t, int64_t>> pairs);
    WindowPadding(const std::vector<std::pair<int64_t, int64_t>> &pairs);
    Attribute attribute = "";
    bool operator==(const WindowPadding &) const = default;
};

/// The padding that an operator has by default.
inline const WindowPadding default_padding;

/// No pairs of axes.
inline const AxisPairs no_axis_pairs;

/// All axes of the first operand: the default value of the axes of reductions, such as mean().
inline const std::vector<int64_t> all_axes{INT64_MIN};

/// The last axis of the first operand: the default value of the axes of softmax(), log_softmax() and masked_softmax(), as in JAX.
inline const std::vector<int64_t> last_axis{-1};

Attribute to_attribute(const AxisPairs &pairs);

/// Applies the operator `op` and returns its first result. `scalide/operators.h` has a function for each operator; use apply() for
/// operators whose name you know only when the program is built. The operands of elementwise operators broadcast. Left-out axes
/// mean the default of the operator, mostly all axes of the first operand. Throws UserError if the operator is unknown, or if the operands
/// or attributes do not fit its rule.
Tensor apply(const std::string &op, std::vector<Operand> operands, Attributes attributes = {},
             const std::source_location &where = std::source_location::current());

/// Applies the operator `op` and returns all its results. Otherwise as apply().
std::vector<Tensor> apply_all(const std::string &op, std::vector<Operand> operands, Attributes attributes = {},
                              const std::source_location &where = std::source_location::current());

/// Applies an operator with n results. The results can be names at once: `auto [values, indices] = top_k(x, 5)`.
template<size_t n>
std::array<Tensor, n> apply_n(const std::string &op, std::vector<Operand> operands, Attributes attributes = {},
                              const std::source_location &where = std::source_location::current()) {
    const std::vector<Tensor> results = apply_all(op, std::move(operands), std::move(attributes), where);
    std::array<Tensor, n> array;
    for (size_t i = 0; i < n; i++) array[i] = results.at(i);
    return array;
}

/// Returns a + b elementwise (lax.add). Shapes broadcast as in NumPy; UserError if they do not. The dtypes must be equal.
Tensor operator+(const Operand &a, const Operand &b);

/// Returns a - b elementwise (lax.sub).
Tensor operator-(const Operand &a, const Operand &b);

/// Returns a * b elementwise (lax.mul). For a matrix product use dot().
Tensor operator*(const Operand &a, const Operand &b);

/// Returns a / b elementwise (lax.div).
Tensor operator/(const Operand &a, const Operand &b);

/// Returns -a elementwise (lax.neg).
Tensor operator-(const TensorUse &a);

/// Returns a < b elementwise (lax.lt), of dtype bool. A number gets the dtype of the tensor. Use eq() and ne() for == and !=: a tensor has
/// no operator == that compares elements, because containers would need its result to be true or false.
Tensor operator<(const TensorUse &a, const TensorUse &b);
/// The same for a number on the right.
Tensor operator<(const TensorUse &a, const Number &b);
/// The same for a number on the left.
Tensor operator<(const Number &a, const TensorUse &b);

/// Returns a <= b elementwise (lax.le), of dtype bool. A number gets the dtype of the tensor.
Tensor operator<=(const TensorUse &a, const TensorUse &b);
/// The same for a number on the right.
Tensor operator<=(const TensorUse &a, const Number &b);
/// The same for a number on the left.
Tensor operator<=(const Number &a, const TensorUse &b);

/// Returns a > b elementwise (lax.gt), of dtype bool. A number gets the dtype of the tensor.
Tensor operator>(const TensorUse &a, const TensorUse &b);
/// The same for a number on the right.
Tensor operator>(const TensorUse &a, const Number &b);
/// The same for a number on the left.
Tensor operator>(const Number &a, const TensorUse &b);

/// Returns a >= b elementwise (lax.ge), of dtype bool. A number gets the dtype of the tensor.
Tensor operator>=(const TensorUse &a, const TensorUse &b);
/// The same for a number on the right.
Tensor operator>=(const TensorUse &a, const Number &b);
/// The same for a number on the left.
Tensor operator>=(const Number &a, const TensorUse &b);

/// Returns the matrix product (lax.dot_general). It contracts the last axis of a with the last axis but one of b, or with the only axis of
/// b. If both operands have more than two axes, the leading axes are batch axes of equal extents. The contracted extents must be equal.
Tensor dot(const Tensor &a, const Tensor &b, const std::source_location &where = std::source_location::current());

/// Returns a sum of products, as numpy.einsum does: einsum("bij,bjk->bik", {a, b}). Axes with the same letter must have the same extent.
/// A letter that occurs twice in one operand selects the diagonal. '...' means all other axes. Without '->', the result has the letters
/// that occur once, in alphabetical order. Operands are multiplied from the first to the last.
Tensor einsum(const std::string &subscripts, const std::vector<Tensor> &operands,
              const std::source_location &where = std::source_location::current());

/// Returns function(x), but the gradient passes to x unchanged (a straight-through estimator).
Tensor map_on_forward(const std::function<Tensor(const Tensor &)> &function, const Tensor &x,
                      const std::source_location &where = std::source_location::current());

/// Returns x, but the gradient with respect to x becomes function(gradient). The function must return the dtype and shape of x.
Tensor map_on_backward(const std::function<Tensor(const Tensor &)> &function, const Tensor &x,
                       const std::source_location &where = std::source_location::current());

/// Whether grad() accepts a tensor that the loss does not depend on.
enum class UnusedTensors : uint8_t { refused, zeros };

/// Tells grad() to return zeros for a tensor that the loss does not depend on: `grad(loss, w, allow_unused)`.
inline constexpr UnusedTensors allow_unused = UnusedTensors::zeros;

/// Returns the gradient of `loss`, a scalar, with respect to w (jax.grad). It has the dtype and shape of w. For a State that was assigned
/// since, w means the value that the loss was computed from. Throws UserError if w is not a float, or if the loss does not depend on w.
/// With allow_unused, the gradient is zero then.
Tensor grad(const Tensor &loss, const Tensor &w, UnusedTensors unused = UnusedTensors::refused,
            const std::source_location &where = std::source_location::current());

/// Returns the gradients of `loss` with respect to several tensors. One call is cheaper than one call for each tensor.
std::vector<Tensor> grad(const Tensor &loss, const std::vector<Tensor> &ws, UnusedTensors unused = UnusedTensors::refused,
                         const std::source_location &where = std::source_location::current());

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

/// The scope `amp_stop`. No built-in policy rounds operands or results of its operators: `const AmpStop stop;`. Use it for products that
/// need the dtype of their operands, such as the iterations of an optimizer.
class AmpStop : public Scope {
public:
    AmpStop() : Scope("amp_stop") {}
};

} // namespace scalide
