#pragma once
#include "lower/kernel/lowered_kernel.h"
#include <functional>

namespace scalide {

struct ElementwiseOperand;
enum class Arithmetic;

/// A position in an array: one i32 Expr for each axis, first axis first.
using Index = std::vector<Halide::Expr>;

/// The values of a kernel program at an index, as Exprs. Elementwise, movement and source operators are inlined, down to the arguments.
/// `bind` gives the reader of a value that lowering stores in a Func; every reduction and matmul needs one.
///
/// The Expr of a value has the type of its dtype: f32, f64, integers or bool. A low-precision float is its bit pattern, UInt(8) or
/// UInt(16).
class Values {
public:
    using Reader = std::function<Halide::Expr(const Index &)>;

    /// Reads arguments through kernel.inputs, which must be complete. `kernel` must outlive this object.
    explicit Values(const LoweredKernel &kernel);

    Halide::Expr at(ValueId value, const Index &index);

    /// Defines that `value` is read through `reader` from now on.
    void bind(ValueId value, Reader reader);
    /// Defines that `value` is component `component` of `func` from now on. `func` is indexed as a buffer (last axis first) and holds
    /// storage types.
    void bind(ValueId value, const Halide::Func &func, int component = 0);
    void unbind(ValueId value) { readers_.erase(value); }
    bool is_bound(ValueId value) const { return readers_.count(value) != 0; }

    /// Adjacent elements along the axis `x` of a result that a schedule wants to move by one access. Movement then clamps indices in groups
    /// where all elements of a group come from one array (lower/values/movement.cpp). 1 by default.
    int most_adjacent() const { return most_adjacent_; }
    void move_adjacent(int most);

    Halide::Expr extent(const Extent &extent) const { return to_expr(extent, kernel_); }
    Index extents(const Extents &shape) const;
    const Program &program() const { return kernel_.program; }
    /// The node that computes `value`; nullptr for an argument.
    const Node *producer(ValueId value) const;

private:
    struct IndexLess {
        bool operator()(const Index &a, const Index &b) const;
    };

    /// A bit pattern, and the f32 number that it stands for. The number is rounded directly, without decoding the pattern.
    struct Rounded {
        Halide::Expr code, rounded;
    };

    Halide::Expr evaluate(ValueId value, const Index &index);
    Halide::Expr convert(const Node &node, const ElementwiseOperand &operand, Dtype dtype);
    Halide::Expr elementwise(const Node &node, const Index &index);

    const LoweredKernel &kernel_;
    int most_adjacent_ = 1;
    std::vector<int> producers_;
    std::map<ValueId, Reader> readers_;
    std::map<ValueId, std::map<Index, Halide::Expr, IndexLess>> known_;
    std::vector<Arithmetic> arithmetic_;      ///< by value
    std::map<const void *, Rounded> rounded_; ///< by the IR node of the bit pattern
};

/// Convert a value's Expr to its storage type in memory and back. bool is stored as UInt(8) 0 or 1; other types do not change.
Halide::Expr to_word(Dtype dtype, const Halide::Expr &value);
Halide::Expr from_word(Dtype dtype, const Halide::Expr &word);

/// Returns an index in the order of a Halide buffer, last axis first.
template<typename T>
std::vector<T> buffer_order(const std::vector<T> &index) {
    return {index.rbegin(), index.rend()};
}

/// Returns the index variables of an array, first axis first. Buffer dimension 0 is `x`, 1 is `y`, then `d2`, `d3` and so on. Schedules
/// find them by name.
std::vector<Halide::Var> axis_vars(int rank);

/// Assigns place = value, for Funcs with one or several components.
void assign(Halide::FuncRef place, const Halide::Tuple &value);

/// Returns `value` for an update over `r`, changed to depend on `r` if it does not. Halide emits no loop for an update that is constant
/// over `r`, so equal terms would be added only once.
Halide::Tuple over(const Halide::RDom &r, const Halide::Tuple &value);

/// Fixes bounds and strides of a buffer to a dense array of this shape. Kernels then read only the address at run time. With
/// `reads_strides`, only the innermost stride is fixed, and kernels also read the other strides.
void fix_layout(Halide::OutputImageParam buffer, const Extents &shape, const LoweredKernel &kernel, bool reads_strides = false);
/// Does the same for all components of an output, because Halide gives them the bounds of the first.
void fix_layout(Halide::Func output, const Extents &shape, const LoweredKernel &kernel, bool reads_strides = false);

} // namespace scalide
