#pragma once
#include "rulebook/builder.h"

namespace scalide {

/// Does what append_region_vjp (regions.h) does for a loop. `scan`: the loop as a scan with a length, which replaces node number `index`.
std::vector<ValueId> append_scan_vjp(Builder &builder, size_t index, const Node &scan, const std::vector<ValueId> &cts,
                                     const std::vector<bool> &active);

/// Does the same for a cond or a switch, which does not change.
std::vector<ValueId> append_branch_vjp(Builder &builder, const Node &node, const std::vector<ValueId> &cts,
                                       const std::vector<bool> &active);

} // namespace scalide
