#pragma once
#include "transforms/fusion/fusion_report.h"
#include <span>

namespace scalide {

/// One pass of fusion: from a program of base operators to one that makes better kernels.
struct FusionPass {
    std::string_view name;
    Program (*run)(const Program &program, const TargetFacts &facts);
};

/// The passes that shape a program for its kernels, in order. `form_kernels` is the last.
std::span<const FusionPass> fusion_passes();

/// Groups the nodes of a shaped program into kernels (passes.h, fuse). `report`: gets what was fused and why.
Program form_kernels(const Program &shaped, const TargetFacts &facts, FusionReport *report = nullptr);

} // namespace scalide
