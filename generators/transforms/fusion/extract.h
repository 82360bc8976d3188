#pragma once
#include "transforms/fusion/groups/groups.h"

namespace scalide {

/// The program of calls to kernels: one call a group, in this order; groups with equal canonical text share a kernel.
Program extract_kernels(const Groups &groups, const std::vector<int> &order);

} // namespace scalide
