#pragma once
#include "ir/program.h"
#include "transforms/analysis/target_facts.h"

namespace scalide {

/// Rewrites matmuls that a library computes (TargetFacts::products) so that their operands are in memory in the form that the library
/// needs. Other operands are copied, and padded with zeros to multiples that the library needs. Reshapes of a matmul's result, and slices
/// that remove the padding, come after the whole call (matmul_call.h).
Program write_calls(const Program &program, const TargetFacts &facts);

} // namespace scalide
