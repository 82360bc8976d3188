#pragma once
#include "emit/plan.h"
#include "tool/loaded_program.h"

namespace scalide {

/// Returns a text such as `first non-finite: norm_max of x (step.scl:3), step 0 (full_1); it reads x, which is not finite`. `find` returns
/// arguments by name.
std::string to_text(const NonFinite &first, const Plan &plan, const std::function<HostArray(const std::string &)> &find);

} // namespace scalide
