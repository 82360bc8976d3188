#pragma once
#include "lower/kernel.h"
#include <functional>

namespace scalide {

struct ElementwiseOperand;

/// Where in an array: one i32 Expr an axis, first axis first.
using Index = std::vector<Halide::Expr>;

/// What the values of a kernel program are at an index, as Exprs. Elementwise, movement and source operators are inlined down to the
/// arguments; what a lowering has put into a Func of its own, and every reduction and contraction, is read through `bind`.
///
/// The Expr of a value has the type of its dtype: f32, f64, integers, bool; a narrow float is its storage code, UInt(8) or UInt(16).
class Values {
public:
    using Reader = std::function<Halide::Expr(const Index &)>;

    /// Reads arguments through kernel.inputs, which must be made already. `kernel` must outlive this.
    explicit Values(const LoweredKernel &kernel);

    Halide::Expr at(ValueId value, const Index &index);

    /// From now on `value` is what `reader` gives.
    void bind(ValueId value, Reader reader);
    /// From now on `value` is component `component` of `func`, which is indexed as a buffer (last axis first) and holds storage words.
    void bind(ValueId value, const Halide::Func &func, int component = 0);
    bool is_bound(ValueId value) const { return readers_.count(value) != 0; }

    Halide::Expr extent(const Extent &extent) const { return to_expr(extent, kernel_); }
    Index extents(const Extents &shape) const;
    const Program &program() const { return kernel_.program; }
    /// The node that makes `value`; nullptr for an argument.
    const Node *producer(ValueId value) const;

private:
    struct IndexLess {
        bool operator()(const Index &a, const Index &b) const;
    };

    /// A code, and the f32 number that it stands for, made without it.
    struct Rounded {
        Halide::Expr code, rounded;
    };

    Halide::Expr evaluate(ValueId value, const Index &index);
    Halide::Expr convert(const Node &node, const ElementwiseOperand &operand, Dtype dtype);
    Halide::Expr elementwise(const Node &node, const Index &index);

    const LoweredKernel &kernel_;
    std::vector<int> producers_;
    std::map<ValueId, Reader> readers_;
    std::map<ValueId, std::map<Index, Halide::Expr, IndexLess>> known_;
    std::map<const void *, Rounded> rounded_; ///< by the node of the code's Expr
};

/// A value's Expr as the word that memory holds, and back: bool is UInt(8) 0 or 1, all others are themselves.
Halide::Expr to_word(Dtype dtype, const Halide::Expr &value);
Halide::Expr from_word(Dtype dtype, const Halide::Expr &word);

/// An index in the order of a Halide buffer, the last axis first.
template<typename T>
std::vector<T> buffer_order(const std::vector<T> &index) {
    return {index.rbegin(), index.rend()};
}

/// Index variables of an array: buffer dimension 0 is `x`, 1 is `y`, then `d2`, `d3` ...; first axis first. Schedules find them by name.
std::vector<Halide::Var> axis_vars(int rank);

/// place = value, for Funcs of one component and of several.
void assign(Halide::FuncRef place, const Halide::Tuple &value);

/// `value` for an update over `r`, made to name `r` if it does not: Halide makes no loop of an update that is the same everywhere, and
/// would add equal terms once.
Halide::Tuple over(const Halide::RDom &r, const Halide::Tuple &value);

/// Fixes bounds and strides of a buffer to a dense array of this shape: nothing about it is looked up at run time but its address.
void make_dense(Halide::OutputImageParam buffer, const Extents &shape, const LoweredKernel &kernel);
/// The same for all components of an output (Halide gives them the bounds of the first).
void make_dense(Halide::Func output, const Extents &shape, const LoweredKernel &kernel);

} // namespace scalide
