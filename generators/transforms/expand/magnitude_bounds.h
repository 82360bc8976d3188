#pragma once
#include "ir/program.h"
#include "rulebook/rulebook.h"

namespace scalide {

/// True for `norm_bound` and `norm_of_state`, which bound_magnitudes() replaces.
bool is_bound(const Node &node);

/// Replaces `norm_bound(x)` and `norm_of_state(x, previous)` by a bound that is known before x is computed: no |x[i]| exceeds it. The
/// program must consist of base operators.
///   argument elements * scalars   their amax, which is computed before x
///   dot_general                   terms of a sum * amax(lhs) * amax(rhs): 0 if one factor is 0
///   x * scalar, x / scalar        bound * |scalar|, bound / |scalar|
///   sums and differences          sum of the bounds
/// The amax of an operand is the one from which its scale was computed, so no kernel reads the operand again. For an argument, the amax is
/// computed. The bound is amax(x) itself if x is computed in another way (products of arrays, reductions, functions), because bounds of
/// squares and quotients are too loose. The same applies if an amax is not known. `norm_of_state` also limits the part that comes from
/// matmuls, by the rule `limited_norm`.
Program bound_magnitudes(const Program &program, const Rulebook &rulebook);

} // namespace scalide
