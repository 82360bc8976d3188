#pragma once
#include "transforms/analysis/fusion_report.h"
#include <span>

namespace scalide {

/// One pass of fusion. It rewrites a program of base operators so that fusion finds better kernels in it.
struct FusionPass {
    std::string_view name;
    Program (*run)(const Program &program, const TargetFacts &facts);
};

/// Lists, in order, the passes that run before form_kernels().
std::span<const FusionPass> fusion_passes();
/// Runs all of them.
Program run_fusion_passes(const Program &program, const TargetFacts &facts);

/// Groups the nodes of `shaped` into kernels (passes.h, fuse). `shaped` must have run through fusion_passes(). If `report` is not null, it
/// receives what was fused and why.
Program form_kernels(const Program &shaped, const TargetFacts &facts, FusionReport *report = nullptr);

} // namespace scalide
