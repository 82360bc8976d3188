#pragma once
#include "transforms/fusion/groups/groups.h"

namespace scalide {

/// Merges producers into consumers, the pair that saves most bytes of memory traffic first, until no pair may be merged.
void merge_along_edges(Groups &groups);

/// Merges kernels that need nothing of each other: sums of operands into contractions, then kernels of one kind (maps when they can run
/// at the same depth, or at the very end).
void merge_side_by_side(Groups &groups);

/// Rank-0 arithmetic: one group a level (several where it is long), where a level is what can run between the same array kernels; and
/// what follows a full reduction alone goes into its kernel.
void merge_scalars(Groups &groups);

} // namespace scalide
