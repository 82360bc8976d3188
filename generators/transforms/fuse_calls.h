#pragma once
#include "transforms/fuse_groups.h"
#include "transforms/target_facts.h"

namespace scalide {

/// A library reads arrays from memory: where an operand of a product that it computes (TargetFacts::products) would be made on the way, or
/// lies otherwise than the library needs, a copy (a `reshape` to the own shape) stands in for it.
Program store_call_operands(const Program &program, const TargetFacts &facts);

/// Marks the groups of products that a library computes, and merges into each what the library does besides (matmul_call.h, as far as its
/// row says). No other arithmetic joins them.
void merge_calls(Groups &groups, const TargetFacts &facts);

} // namespace scalide
