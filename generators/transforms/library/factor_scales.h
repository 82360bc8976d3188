#pragma once
#include "ir/program.h"
#include "transforms/target_facts.h"

namespace scalide {

/// Takes scales out of products: an operand whose f8 codes are multiplied by a number, or by one for each of its rows or columns that stay,
/// becomes the codes, and the sums are multiplied. A product of codes is a library's on far more cards than one of codes times scales;
/// where the target's library takes the scales themselves, or has no row for the codes, all stays as it is. Sums are rounded before they
/// are scaled, not after.
Program factor_scales(const Program &program, const TargetFacts &facts);

} // namespace scalide
