#pragma once
#include <span>
#include <string_view>

namespace scalide {

/// How a base operator moves over indices. It decides how the interpreter walks and what `fuse` may do with it.
enum class Shape {
    elementwise, ///< out[i] = f(in0[i], in1[i] ...); all shapes equal (`which` of select_n may also be rank 0)
    movement,    ///< out[i] = in[g(i)] (or a fill): broadcast_in_dim reshape transpose rev slice pad concatenate; g may read indices:
                 ///< gather dynamic_slice dynamic_update_slice
    source,      ///< no operands: constant iota size
    reduce,      ///< folds axes: reduce_sum, _max, _min, _prod, _and, _or, _xor, argmax argmin
    scan,        ///< out[i] folds what stands up to i along an axis: cumsum cumprod cummax cummin cumlogsumexp
    scatter,     ///< a copy of an array with updates at places that indices say
    sort,        ///< argsort
    contract,    ///< dot_general
    window,      ///< out[i] = what lies under window i: reduce_window_*, select_and_scatter_add and its kin, conv_general_dilated
};

/// The f64 value of one element. Bools are 0 or 1. An operator with a number among its attributes takes it as a last argument
/// (BaseOperator::parameter).
using Evaluate = double (*)(std::span<const double>);

/// One row of the closed list of operators whose meaning is C++: everything else is a rule's `value`.
struct BaseOperator {
    std::string_view name; ///< LAX name
    Shape shape;
    int arity;         ///< -1: variadic
    Evaluate evaluate; ///< elementwise only: JAX's rules for NaN, infinities and signed zero, all in f64. nullptr for the conversions
                       ///< (convert_element_type, reduce_precision): they are about formats, which ir/dtype.h knows.
    Evaluate evaluate_integer = nullptr; ///< where integers follow another rule (div, rem, not) or f64 is not exact (mul, integer_pow);
                                         ///< nullptr: `evaluate`. Exact in the low 32 bits; wrapping around is left to the caller.
    std::string_view parameter = {};     ///< the attribute that `evaluate` takes as a last argument: integer_pow's exponent `y`
    bool takes_width = false;            ///< the functions take the bits of the operands' dtype as a last argument: shifts, counts of bits
};

/// The row of `name`, or nullptr when it is no base operator.
const BaseOperator *find_base_operator(std::string_view name);

/// Arithmetic of one element of an operator, in units of an addition (a division 4, an exponential 12). For decisions, not for reports of
/// time.
int operator_cost(std::string_view op);

/// All rows, in the order of the documentation.
std::span<const BaseOperator> base_operators();

} // namespace scalide
