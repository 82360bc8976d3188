#pragma once
#include "transforms/fusion/groups/groups.h"

namespace scalide {

/// Returns an order in which the groups can run. Of the groups that are ready, the one that reduces live bytes most runs first. On a tie,
/// the group whose first node comes first in the program runs first.
std::vector<int> run_order(const Groups &groups);

} // namespace scalide
