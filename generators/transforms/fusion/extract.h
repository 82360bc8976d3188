#pragma once
#include "transforms/fusion/groups/groups.h"

namespace scalide {

/// Returns a program that calls kernels: one call for each group, in this order. Groups with equal canonical text share one kernel.
Program extract_kernels(const Groups &groups, const std::vector<int> &order);

} // namespace scalide
