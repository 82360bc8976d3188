#pragma once
#include "ir/program.h"
#include "transforms/target_facts.h"

namespace scalide {

/// Why no library of the target computes a dot_general in place of the kernel that it is in: in words for the build report.
std::string why_no_library(const Program &kernel, const Node &dot, const TargetFacts &facts);

} // namespace scalide
