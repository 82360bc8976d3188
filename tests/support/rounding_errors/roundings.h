#pragma once
#include "interpret/operation.h"
#include <functional>

namespace scalide {

/// Returns the result of the operation on other operands, before it is rounded. Conversions round.
std::vector<double> run_on(const Operation &operation, std::vector<const Array *> operands);

/// True for conversions between formats. Their result depends on the mode; they have no other rounding.
bool converts(const Operation &operation);

/// True if its elements are sums or products of floats.
bool sums_floats(const Operation &operation);

/// Returns the sum of other terms, given by term(operand, element).
std::vector<double> sum_of(const Operation &operation, const std::function<double(const Array &, size_t)> &term);

/// How functions are computed: on a CPU; by the instructions of a GPU; there with forms for rounded results, too (lower/math/device.cpp).
enum class FunctionErrors { cpu, device, device_rounded };
void set_function_errors(FunctionErrors errors);

/// How far its own roundings may make each element of an operation differ, from operands without errors: 2 ulp of functions
/// (tests/exhaustive), of sums a multiple of the magnitudes of their terms (Higham, "Accuracy and Stability of Numerical Algorithms", 2002,
/// chapters 3 and 4). What moves, chooses and counts has none. In mode `stored` both sides compute in f32 (f64 where a value is one) and
/// their storing is left out; in mode `real` each rounds to the dtype of a value as it likes. `exact`: the result of run_on.
std::vector<double> own_roundings(const Operation &operation, const std::vector<double> &exact);

} // namespace scalide
