#pragma once
#include "transforms/simplify/movement_chains.h"

namespace scalide {

/// Computes comparisons and selections of f64 values in f32 if all operands are exact in f32, because these operators do not round. Scale
/// arithmetic uses f64 so that products of scales do not overflow. Limits of a scale that comes from one f32 value need no f64. Returns
/// nothing if an operand has no f32 form.
std::optional<ValueId> choose_in_f32(const Candidate &candidate);

/// Updates a part of an array (dynamic_update_slice, scatter) in the narrow format of the array and of the update, and widens the result.
/// The elements only move, so the values are the same. An inout argument can then be updated in its buffer. Returns nothing if the operands
/// are not widened from one format.
std::optional<ValueId> update_in_format(const Candidate &candidate);

/// Rounds only the updated elements of a scatter that combines a narrow array with updates in a wider format (scatter_add). The windows are
/// gathered, combined with the updates, rounded, and scattered into the narrow array. An inout argument can then be updated in its buffer.
/// The candidate is the rounding of the whole array. If indices may repeat, all updates of one place are combined before the rounding.
/// Returns nothing if windows may overlap in part, or if comparing all pairs of indices costs more than to copy the array.
std::optional<ValueId> round_windows(const Candidate &candidate);

} // namespace scalide
