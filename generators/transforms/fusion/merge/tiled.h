#pragma once
#include "transforms/analysis/target_facts.h"
#include "transforms/fusion/groups/groups.h"

namespace scalide {

/// Forms kernels of kind `tiled` on targets whose matmuls go to a library, which are GPUs. On CPUs, an array that one kernel wrote is still
/// in a cache when the next one reads it. A tiled kernel merges a map with the transposed copies of its values, and with reductions over
/// all axes whose order is free. A transposed copy alone does not join maps, because these would then read memory with strides.
void merge_tiled(Groups &groups, const TargetFacts &facts);

} // namespace scalide
