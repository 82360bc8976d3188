#pragma once
#include "transforms/fusion/groups/groups.h"

namespace scalide {

/// Orders every reader of an inout argument before the node that computes the argument's new value. Returns false if a reader depends on
/// that node.
[[nodiscard]] bool order_overwrites(Groups &groups);

/// Returns `node` and all nodes of its group that depend on it.
std::vector<int> following(const Groups &groups, int node);

/// True if a kernel of these nodes may overwrite its inout arguments in place. From each read of such an argument to the results, all nodes
/// must be elementwise and have the argument's shape (kinds/kernel_kinds.h).
bool overwrites_safely(const Groups &groups, const std::vector<int> &nodes);

/// True for a scatter whose result overwrites its array. Its kernel reads and writes only the elements that the updates change.
bool updates_in_place(const FuseGraph &graph, int node);

/// Adds copies, so that each result has memory of its own. A copy is needed in three cases: an argument is a result; two results are one
/// value; the old value of an inout argument is still needed when the new value is written.
Program copy_shared_results(const Program &program, bool prepares_kernels);

} // namespace scalide
