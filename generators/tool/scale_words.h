#pragma once
#include "transforms/numerics/numerics_report.h"

namespace scalide {

/// Returns where a scale comes from, as all reports print it: "current (from its data, dynamic_rescale)". It is in explain.cpp.
std::string words(const ScaleOrigin &scale);

} // namespace scalide
