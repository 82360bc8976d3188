#pragma once
#include "transforms/fuse_groups.h"

namespace scalide {

/// Nodes that round operands of products, and the cheap arithmetic before them, where finished groups store the rounded array for products
/// alone and what it is made of lies in memory too. A product that packs its operands rounds them there: an array less is written, and
/// the kernel that wrote it is gone. For targets whose products pack (TargetFacts::prepares_kernels). Added to those that are `repeated`
/// anyway. An argument that is overwritten is read so where all of that can still be ordered.
std::set<int> rounded_in_packing(const Groups &groups, const std::set<int> &repeated);

} // namespace scalide
