#pragma once
#include "transforms/analysis/passes.h"

namespace scalide {

/// Describes one kernel. Kernels are listed in the order of their calls.
struct KernelReport {
    std::string kernel; ///< name of the sub-program
    std::string kind;
    std::vector<std::string> values;     ///< what it computes: names of values between kernels
    std::vector<std::string> fused;      ///< operators that run in this kernel, in program order
    std::vector<std::string> recomputed; ///< operators that other kernels run too (sources, movement, decoding, cheap arithmetic)
    Extent bytes_read, bytes_written;
    Extent flops; ///< counted in additions: cost_of (fusion/groups/costs.h) for each element; a multiply-add of a dot_general counts 2
};

/// Explains why a producer and a consumer are two kernels.
struct UnfusedEdge {
    int producer, consumer;          ///< indices of the two calls
    std::vector<std::string> values; ///< values that the consumer reads from the producer
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

/// Does the same as fuse() and returns the report as well.
Fusion fuse_and_explain(const Program &program, const TargetFacts &facts);

} // namespace scalide
