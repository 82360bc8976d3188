#pragma once
#include "transforms/passes.h"

namespace scalide {

/// What one kernel does, in the order of the calls.
struct KernelReport {
    std::string kernel; ///< sub-program
    std::string kind;
    std::vector<std::string> fused;      ///< operators of the program that run in it, in its order
    std::vector<std::string> recomputed; ///< operators that other kernels run too (sources, movement, decoding, cheap arithmetic)
    Extent bytes_read, bytes_written;
    Extent flops; ///< additions and what takes their time: see cost_of in fusion/groups/costs.h; 2 a product of a dot_general
};

/// Why two kernels that one value connects are two.
struct UnfusedEdge {
    int producer, consumer;          ///< calls, by their order
    std::vector<std::string> values; ///< that cross
    std::string reason;
};

/// What `scalide inspect` prints about the kernels of a program.
struct FusionReport {
    std::vector<KernelReport> kernels;
    std::vector<UnfusedEdge> edges;
};

struct Fusion {
    Program program;
    FusionReport report;
};

/// fuse(), with the report.
Fusion fuse_and_explain(const Program &program, const TargetFacts &facts);

} // namespace scalide
