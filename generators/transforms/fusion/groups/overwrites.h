#pragma once
#include "transforms/fusion/groups/groups.h"

namespace scalide {

/// Every reader of an inout argument runs before the node that makes its new value; false when one of them can only run after it.
[[nodiscard]] bool order_overwrites(Groups &groups);

/// The nodes of the group of `node` that follow from it, `node` included.
std::vector<int> following(const Groups &groups, int node);

/// True when a kernel of these nodes may overwrite in place: where it reads the argument itself, only elementwise nodes lead from there to
/// its results, which then have the argument's shape (kinds/kernel_kinds.h).
bool overwrites_safely(const Groups &groups, const std::vector<int> &nodes);

/// The program with copies where a result has no memory of its own: an argument as a result, one value for two results, and the new value
/// of an inout argument whose old contents are still needed when it is made.
Program copy_shared_results(const Program &program, bool repeats_scalars);

} // namespace scalide
