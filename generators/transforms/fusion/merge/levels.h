#pragma once
#include "transforms/fusion/groups/groups.h"

namespace scalide {

/// Divides groups (`is_member`, by group) into parts that can be one kernel each. A level holds all members that can run between the same
/// other groups. It becomes one part, or several of at most `most_nodes` nodes, which include the nodes that each kernel recomputes. 256
/// elements that a kernel may store count as a node.
std::vector<std::vector<int>> parts_of_levels(const Groups &groups, const std::vector<bool> &is_member, int most_nodes);

} // namespace scalide
