#pragma once
#include "ir/program.h"
#include "rulebook/rulebook.h"

namespace scalide {

/// `norm_bound(x)` of a program in base operators, as numbers that are known before x is made: no magnitude of x exceeds them.
///   elements of arguments times rank-0 numbers   their largest magnitude, which is read before x is
///   dot_general of stored codes                  terms of a sum * largest code * largest code (of their formats)
///   times or over a rank-0 number                bound * |number|, bound / |number|
///   sums and differences                         the sum of the bounds
/// Where x is made otherwise (products of arrays, reductions, functions) it is the largest magnitude of x itself: bounds of squares and
/// quotients say nothing. A bound costs range at the small end of a format, at most the number of terms of a sum times what the largest
/// code is above the usual one, and no precision above that.
Program bound_magnitudes(const Program &program, const Rulebook &rulebook);

} // namespace scalide
