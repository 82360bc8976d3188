#pragma once
#include "ir/program.h"
#include "rulebook/rulebook.h"

namespace scalide {

/// True for `norm_bound` and `norm_of_state`, which bound_magnitudes replaces.
bool is_bound(const Node &node);

/// `norm_bound(x)` and `norm_of_state(x, previous)` of a program in base operators, as numbers that are known before x is made: no
/// magnitude of x exceeds them.
///   elements of arguments times rank-0 numbers   their largest magnitude, which is read before x is
///   dot_general                                  terms of a sum * largest magnitude of lhs * largest magnitude of rhs: 0 if one is 0
///   times or over a rank-0 number                bound * |number|, bound / |number|
///   sums and differences                         the sum of the bounds
/// The largest magnitude of an operand is the one that its scale was made of, so no kernel reads the operand again; for an argument it is
/// computed. Where x is made otherwise (products of arrays, reductions, functions), or a largest magnitude is not known, the bound is the
/// largest magnitude of x itself: bounds of squares and quotients say nothing. `norm_of_state` also limits the part that comes from
/// products, by the rule `limited_norm`.
Program bound_magnitudes(const Program &program, const Rulebook &rulebook);

} // namespace scalide
