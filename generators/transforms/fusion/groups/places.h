#pragma once
#include "transforms/fusion/groups/groups.h"

namespace scalide {

/// How many expressions a kernel of these nodes would be: one a node and place at which the node is computed. A value that is read at
/// other indices (through slices, pads, transposes ...) is computed once more for each way that leads to it, so that a chain of n such
/// reads of two places each is 2^n expressions. Counts to `most` and stops.
int count_places(const Groups &groups, const std::vector<int> &nodes, int most);

} // namespace scalide
