#pragma once
#include "transforms/library/matmul_call.h"
#include "transforms/target_facts.h"

namespace scalide {

/// True where all cards (compute capabilities) know this product.
bool has_cards(const LibraryProduct &product, const std::vector<int> &cards);

/// The row of the target's table for a call: what the library does of it and stores, on all cards that kernels are made for. Null when no
/// library computes it. Extents of scaled operands must be multiples of what it needs; others get zeros.
const LibraryProduct *find_product(const Program &program, const MatmulCall &call, const TargetFacts &facts);

/// Why no library computes a dot_general in place of the kernel that it is in: in words for the build report.
std::string why_no_library(const Program &kernel, const Node &dot, const TargetFacts &facts);

/// A sentence for each product of a program before fusion whose operands are scaled by rows or blocks, but by kernels of ours: with the
/// cards where this is so, if not on all.
std::vector<std::string> scales_left_to_kernels(const Program &program, const TargetFacts &facts);

} // namespace scalide
