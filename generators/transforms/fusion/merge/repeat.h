#pragma once
#include "transforms/fusion/groups/groups.h"

namespace scalide {

/// Returns nodes whose values groups store for other kernels although these could recompute them. They are cheap arithmetic on values that
/// are in memory anyway when the reader runs. The added reads may cost at most twice the traffic that is saved, because each result less
/// saves a loop and memory of the arena.
std::set<int> cheaper_to_repeat(const Groups &groups);

} // namespace scalide
