#pragma once
#include "transforms/simplify/movement_chains.h"

namespace scalide {

/// Comparisons and choices among f64 numbers that are all f32 numbers, in f32: they round nothing. Scale arithmetic is f64 so that products
/// of scales do not overflow; the limits of a scale that one f32 number gives need no f64. Nothing where an operand has no f32 form.
std::optional<ValueId> choose_in_f32(const Candidate &candidate);

} // namespace scalide
