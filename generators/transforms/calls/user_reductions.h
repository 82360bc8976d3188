#pragma once
#include "rulebook/builder.h"

namespace scalide {

/// Writes `reduce(arrays..., inits...) {program, axes}` as a program of ordinary operators. A sub-program of rank-0 values, (a..., b...) ->
/// (c...), reduces arrays of one shape. It must be associative, and its results must have the dtypes of the arrays. Neighbours are combined
/// in pairs, then these pairs, in row-major order. At the end, the init is combined with the result. Operands are those of the call, in the
/// caller's symbols. Throws UserError at the call if the operands, the axes or the sub-program do not fit, or if a reduced extent is not
/// static.
Program reduce_by_program(const Node &call, const Program &computation, const std::vector<Type> &operands, const Rulebook &rulebook);

/// Does the same for `reduce_window(arrays..., inits...) {program, window, strides, low, high, base_dilation, window_dilation}`. The
/// elements of each window are reduced. Positions without an element hold the init.
Program reduce_windows_by_program(const Node &call, const Program &computation, const std::vector<Type> &operands,
                                  const Rulebook &rulebook);

} // namespace scalide
