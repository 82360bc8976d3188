#pragma once
#include "transforms/fusion/groups/groups.h"

namespace scalide {

/// Nodes that round operands of matmuls, and the cheap arithmetic before them. They are listed if the rounded array is stored for matmuls
/// alone and its inputs lie in memory too. A matmul kernel that packs its operands can round them while it packs: one array less is
/// written, and one kernel less runs. This applies to targets whose matmul kernels pack (TargetFacts::prepares_kernels).
struct RoundedInPacking {
    std::set<int> always;
    std::set<int> where_ordered; ///< nodes that read overwritten arguments: only if all such readers can still be ordered
};
RoundedInPacking rounded_in_packing(const Groups &groups);

} // namespace scalide
