#pragma once
#include "transforms/analysis/target_facts.h"
#include "transforms/library/matmul_call.h"

namespace scalide {

/// True if the library computes this product on all of these compute capabilities.
bool has_cards(const LibraryProduct &product, const std::vector<int> &cards);

/// Returns the table row that covers a call on all compute capabilities of the target, with its results. Returns null if no library
/// computes the call. Extents of scaled operands must be multiples of what the row needs. Other operands are padded with zeros.
const LibraryProduct *find_product(const Program &program, const MatmulCall &call, const TargetFacts &facts);

/// Explains for the build report why a generated kernel computes a dot_general and no library.
std::string why_no_library(const Program &kernel, const Node &dot, const TargetFacts &facts);

/// Returns a message for each matmul before fusion whose operands have scales for rows or blocks, if a generated kernel applies these
/// scales. If this holds only for some compute capabilities, the message names them.
std::vector<std::string> scales_left_to_kernels(const Program &program, const TargetFacts &facts);

} // namespace scalide
