#pragma once
#include "transforms/simplify/movement_chains.h"

namespace scalide {

/// Computes comparisons and selections of f64 values in f32 if all operands are exact in f32, because these operators do not round. Scale
/// arithmetic uses f64 so that products of scales do not overflow. Limits of a scale that comes from one f32 value need no f64. Returns
/// nothing if an operand has no f32 form.
std::optional<ValueId> choose_in_f32(const Candidate &candidate);

} // namespace scalide
