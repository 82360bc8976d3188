#pragma once
#include "transforms/fusion/groups/groups.h"

namespace scalide {

/// Counts the expressions of a kernel with these nodes: one for each node and each index at which it is computed. A value that is read at
/// other indices (through slices, pads, transposes) is computed once for each path to it. A chain of n such reads with two indices each
/// needs 2^n expressions. The count stops at `most`.
int count_places(const Groups &groups, const std::vector<int> &nodes, int most);

} // namespace scalide
