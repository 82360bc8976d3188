#pragma once
#include <span>
#include <string_view>

namespace scalide {

/// How a base operator moves over indices. It decides how the interpreter walks and what `fuse` may do with it.
enum class Shape {
    elementwise, ///< out[i] = f(in0[i], in1[i] ...); all shapes equal
    movement,    ///< out[i] = in[g(i)] (or a fill): broadcast_in_dim reshape transpose rev slice pad concatenate
    source,      ///< no operands: constant iota size
    reduce,      ///< folds axes: reduce_sum reduce_max reduce_min reduce_prod argmax argmin
    contract,    ///< dot_general
};

/// One row of the closed list of operators whose meaning is C++: everything else is a rule's `value`.
struct BaseOperator {
    std::string_view name; ///< LAX name
    Shape shape;
    int arity;                                   ///< -1: variadic
    double (*evaluate)(std::span<const double>); ///< elementwise only: the f64 value. bool is 0 or 1. JAX's rules for NaN, infinities,
                                                 ///< signed zero and integer division.
};

/// The row of `name`, or nullptr when it is no base operator.
const BaseOperator *find_base_operator(std::string_view name);

/// All rows, in the order of the documentation.
std::span<const BaseOperator> base_operators();

} // namespace scalide
