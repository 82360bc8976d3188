#pragma once
#include "transforms/fusion/groups/groups.h"

namespace scalide {

/// Nodes that finished groups store for other kernels, though these could compute them again: cheap arithmetic on values that are in
/// memory anyway when the reader runs, at no more than twice the traffic (a result less is a loop and a place in the arena less).
std::set<int> cheaper_to_repeat(const Groups &groups);

} // namespace scalide
