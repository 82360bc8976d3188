#pragma once
#include "transforms/fusion/groups/groups.h"
#include "transforms/target_facts.h"

namespace scalide {

/// Kernels of kind `tiled` where products go to a library, that is, on a device (elsewhere what a kernel wrote is in a cache when the next
/// one reads it): a map takes the transposed copies of its values along, and the reductions over all axes that need no order and read what
/// it makes or reads. What is a transposed copy alone stays apart from maps, which would read across memory.
void merge_tiled(Groups &groups, const TargetFacts &facts);

} // namespace scalide
