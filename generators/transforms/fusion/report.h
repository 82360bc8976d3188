#pragma once
#include "transforms/analysis/fusion_report.h"
#include "transforms/fusion/groups/groups.h"

namespace scalide {

/// Describes finished groups, which run in this order.
FusionReport explain_fusion(const Groups &groups, const std::vector<int> &order);

} // namespace scalide
