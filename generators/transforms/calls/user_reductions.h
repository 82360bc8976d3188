#pragma once
#include "rulebook/builder.h"

namespace scalide {

/// `reduce(arrays..., inits...) {program, axes}` as a program of ordinary operators: arrays of one shape are folded by a sub-program of
/// rank-0 values, (a..., b...) -> (c...), that is associative; its results have the dtypes of the arrays. Neighbours are combined in
/// pairs, then pairs, in row-major order, and at last the init with what came out. Operands are those of the call in the caller's symbols.
/// Throws UserError at the call when they, the axes or the sub-program do not fit, or a reduced extent is not static.
Program reduce_by_program(const Node &call, const Program &computation, const std::vector<Type> &operands, const Rulebook &rulebook);

/// `reduce_window(arrays..., inits...) {program, window, strides, low, high, base_dilation, window_dilation}`: the same for what lies
/// under each window; places without an element hold the init.
Program reduce_windows_by_program(const Node &call, const Program &computation, const std::vector<Type> &operands,
                                  const Rulebook &rulebook);

} // namespace scalide
