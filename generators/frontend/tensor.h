#pragma once
#include "rulebook/builder.h"
#include <functional>
#include <initializer_list>

namespace scalide {

class Numerics;
template<typename T>
class GeneratorParam;

/// An array in a program that is being written down. Copies are handles of the same value; assignment changes what a name means, as
/// in any functional program. Operands broadcast as in NumPy: axes align at the end, extents of 1 and missing axes grow.
class Tensor {
public:
    Tensor() = default;
    /// A value of the program under construction.
    explicit Tensor(ValueId value);

    Dtype dtype() const;
    const Extents &shape() const;
    int rank() const { return static_cast<int>(shape().size()); }
    /// The number in the program; throws UserError when nothing was assigned yet, or when it is of another program than the one under
    /// construction (inside the function that a reduction calls, a tensor from outside).
    ValueId value() const;

    /// Calls on the numbers of this value: `h.numerics().rescale("max", 224).store(Dtype::f8_e4m3fn)`. What was called holds for every
    /// later use of this handle.
    Numerics numerics();

protected:
    ValueId value_ = -1;
    int program_ = 0; ///< the number of the tracer
};

class Numerics {
public:
    explicit Numerics(Tensor &tensor) : tensor_(tensor) {}
    /// Moves a power of two from data to scale: norm is max, l1 or l2; data of that norm lands in [to, 2 * to).
    Numerics &rescale(const std::string &norm, double to = 1);
    /// Rounds the value through a storage dtype; the gradient passes as it is.
    Numerics &store(Dtype dtype);

private:
    Tensor &tensor_;
};

/// A tensor, a number or a GeneratorParam, as operators take them. A number takes the dtype of the tensors beside it.
struct Operand {
    Operand(const Tensor &tensor) : tensor(tensor) {}
    Operand(double number) : number(number), is_number(true) {}
    template<typename T>
    Operand(const GeneratorParam<T> &param) : Operand(static_cast<double>(static_cast<T>(param))) {}
    Tensor tensor;
    double number = 0;
    bool is_number = false;
};

/// Axes of the first operand and of the second, paired: `dot_general(x, y, {{2}, {0}})`.
struct AxisPairs {
    AxisPairs() = default;
    AxisPairs(std::vector<int64_t> first, std::vector<int64_t> second) : first(std::move(first)), second(std::move(second)) {}
    std::vector<int64_t> first, second;
    bool operator==(const AxisPairs &) const = default;
};
inline const AxisPairs no_axis_pairs;
/// Stands for axes that are left out: all of the first operand.
inline const std::vector<int64_t> all_axes{INT64_MIN};
Attribute to_attribute(const AxisPairs &pairs);

/// Any operator of the rulebook by name; axes may be left out, too. Operands of elementwise rules broadcast
/// against each other. `apply` is for one result. The functions in `scalide/operators.h`, one for each rule, call these.
Tensor apply(const std::string &op, std::vector<Operand> operands, Attributes attributes = {});
std::vector<Tensor> apply_all(const std::string &op, std::vector<Operand> operands, Attributes attributes = {});

Tensor operator+(const Operand &a, const Operand &b);
Tensor operator-(const Operand &a, const Operand &b);
Tensor operator*(const Operand &a, const Operand &b);
Tensor operator/(const Operand &a, const Operand &b);
Tensor operator-(const Tensor &a);

/// Matrix product over the last axis of `a` and the last but one (or only) axis of `b`; leading axes of both are batch axes.
Tensor dot(const Tensor &a, const Tensor &b);

/// Sums of products by the subscripts of NumPy's einsum: "bij,bjk->bik". Operands are multiplied from the first to the last. A letter that
/// stands twice in one term takes the diagonal, '...' stands for the axes that are left; without '->' the result has the letters that
/// stand once, in the order of the alphabet. Axes of one letter must have one extent.
Tensor einsum(const std::string &subscripts, const std::vector<Tensor> &operands);

/// function(x), whose gradient passes to x as it is: what is done to x on the forward pass alone.
Tensor map_on_forward(const std::function<Tensor(const Tensor &)> &function, const Tensor &x);

/// x, whose cotangent becomes function(cotangent) on the way back. Both have the type of x.
Tensor map_on_backward(const std::function<Tensor(const Tensor &)> &function, const Tensor &x);

/// d loss / d w; `loss` has rank 0. Several at once share their work.
Tensor grad(const Tensor &loss, const Tensor &w);
std::vector<Tensor> grad(const Tensor &loss, const std::vector<Tensor> &ws);

/// While it lives, new nodes carry this scope below the enclosing one ("mlp" / "0"): policies match it.
class Scope {
public:
    explicit Scope(const std::string &name);
    ~Scope();
    Scope(const Scope &) = delete;

private:
    std::string outer_;
};

} // namespace scalide
