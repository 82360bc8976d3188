#pragma once
#include "transforms/fuse_groups.h"
#include "transforms/fusion_report.h"

namespace scalide {

/// The report of finished groups that run in this order.
FusionReport explain_fusion(const Groups &groups, const std::vector<int> &order);

} // namespace scalide
