#pragma once
#include "transforms/fusion/groups/groups.h"

namespace scalide {

/// Merges producers into consumers. The pair that saves the most bytes of memory traffic comes first.
void merge_along_edges(Groups &groups);

/// Merges kernels that do not depend on each other. Sums of operands join matmul kernels first; then kernels of one kind are merged. Maps
/// are merged if they can run at the same depth, or if nothing runs after either.
void merge_side_by_side(Groups &groups);

/// Merges rank-0 arithmetic. A level holds all that can run between the same array kernels; it becomes one group, or several if it is long.
/// Arithmetic that depends on one full reduction alone joins that kernel.
void merge_scalars(Groups &groups);

} // namespace scalide
