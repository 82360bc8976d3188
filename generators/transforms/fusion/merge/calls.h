#pragma once
#include "transforms/analysis/target_facts.h"
#include "transforms/fusion/groups/groups.h"

namespace scalide {

/// Marks the groups of matmuls that a library computes. Merges into each group what the library computes in the same call (matmul_call.h,
/// limited by the row of the library's table). No other arithmetic joins these groups.
void merge_calls(Groups &groups, const TargetFacts &facts);

} // namespace scalide
