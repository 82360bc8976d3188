#pragma once
#include "ir/program.h"
#include "transforms/target_facts.h"

namespace scalide {

/// A program after fusion, and the cards (compute capabilities) that run it.
struct CardProgram {
    Program fused;
    std::vector<int> cards;
};

/// What `expanded` becomes on cards whose library computes products that those of others do not; cards that are not there run `fused`,
/// which is for all. Empty where it is the same on each.
std::vector<CardProgram> fuse_for_cards(const Program &expanded, const Program &fused, const TargetFacts &facts);

} // namespace scalide
