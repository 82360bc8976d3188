#pragma once
#include "interpret/operation.h"
#include "ir/regions.h"

namespace scalide {

/// Runs a region on the arrays of its arguments. `step` counts the steps of its loop from 0, in the order of the run; -1: it is a branch.
using RunRegion = std::function<std::vector<Array>(const Program &region, const std::vector<const Array *> &inputs, int64_t step)>;

/// Runs a loop or a branch (ir/regions.h) and returns its results. Throws UserError after 10^7 steps, or after `max_steps`.
std::vector<Array> run_regions(const Node &node, const Operation &operation, const RunRegion &run);

} // namespace scalide
