#pragma once
#include "ir/program.h"
#include "transforms/analysis/target_facts.h"

namespace scalide {

/// A program after fusion, and the compute capabilities for which it is used.
struct CardProgram {
    Program fused;
    std::vector<int> cards;
};

/// Fuses `expanded` again for compute capabilities whose library computes matmuls that the others' library does not. All other GPUs run
/// `fused`. Empty if the result is the same for all. The pass card_forms checks the programs.
std::vector<CardProgram> fuse_for_cards(const Program &expanded, const Program &fused, const TargetFacts &facts);

} // namespace scalide
