#pragma once
#include "transforms/fusion/groups/groups.h"

namespace scalide {

/// Merges the kernels of a step of a loop that work on small arrays (kinds/small.h) into kernels of class `small`. A kernel that overwrites
/// an argument stays as it is.
void merge_small(Groups &groups);

} // namespace scalide
