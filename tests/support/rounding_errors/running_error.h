#pragma once
#include "interpret/interpret.h"

namespace scalide {

/// How far computations of one meaning may be apart, element by element: a running error analysis (Wilkinson, "Error analysis revisited",
/// 1986; Higham, "Accuracy and Stability of Numerical Algorithms", 2002, section 3.3). Beside the values the interpreter carries bounds of
/// their errors. Those of a node are
///
///   what the errors of its operands make of it: |f(.., x +- error(x), ..) - f(.., x, ..)|, operand by operand, so that what jumps (a
///   comparison, a rounding to a narrow format) is open where an operand comes near the jump, and there alone; of sums, products and
///   contractions f(|x| + error(x)) - f(|x|)
///   + its own roundings (roundings.h).
///
/// The errors are in Array::error of the results. They are bounds: through many layers they grow as if all errors had the worst signs,
/// where monte_carlo.h tells more.
std::vector<Array> interpret_with_errors(const Program &program, const std::vector<Array> &inputs, const Rulebook &rulebook, Mode mode);

/// Describes the first element of `got` that differs from `expected` by more than `share` of its error bound. Returns "" if there is none.
/// NaN equals NaN.
std::string difference(const Array &got, const Array &expected, double share = 1);
/// Compares all results of a program.
std::string difference(const std::vector<Array> &got, const std::vector<Array> &expected, double share = 1);

} // namespace scalide
