#pragma once
#include "transforms/fusion/groups/groups.h"
#include "transforms/target_facts.h"

namespace scalide {

/// Marks the groups of products that a library computes, and merges into each what the library does besides (matmul_call.h, as far as its
/// row says). No other arithmetic joins them.
void merge_calls(Groups &groups, const TargetFacts &facts);

} // namespace scalide
