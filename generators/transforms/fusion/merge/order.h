#pragma once
#include "transforms/fusion/groups/groups.h"

namespace scalide {

/// An order in which the groups can run: of those that are ready, the one that lets most bytes die for those it makes comes first; of
/// equals the one whose nodes come first in the program.
std::vector<int> run_order(const Groups &groups);

} // namespace scalide
