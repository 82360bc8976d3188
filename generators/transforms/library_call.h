#pragma once
#include "transforms/matmul_call.h"
#include "transforms/target_facts.h"

namespace scalide {

/// The row of the target's table for a dot_general; null when no library computes it.
const LibraryProduct *find_product(const Program &program, const Node &node, const TargetFacts &facts);

/// Why no library computes a dot_general in place of the kernel that it is in: in words for the build report.
std::string why_no_library(const Program &kernel, const Node &dot, const TargetFacts &facts);

/// True when the library does all that the call asks for and stores its result.
bool stores(const LibraryProduct &product, const Program &program, const MatmulCall &call);

} // namespace scalide
