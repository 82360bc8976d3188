#pragma once
#include "transforms/fusion/groups/groups.h"

namespace scalide {

/// Nodes that round operands of products, and the cheap arithmetic before them, where finished groups store the rounded array for products
/// alone and what it is made of lies in memory too. A product that packs its operands rounds them there: an array less is written, and
/// the kernel that wrote it is gone. For targets whose products pack (TargetFacts::prepares_kernels).
struct RoundedInPacking {
    std::set<int> always;
    std::set<int> where_ordered; ///< reads arguments that are overwritten: where all of that can still be ordered
};
RoundedInPacking rounded_in_packing(const Groups &groups);

} // namespace scalide
