#pragma once
#include "tool/loaded_program.h"
#include "transforms/pipeline.h"
#include <nlohmann/json_fwd.hpp>

namespace scalide {

/// Returns what a page shows of a program under a policy: `sites` and `matmuls` with their formats, `kernels`, `edges` between kernels that
/// are not fused, `memory` over the steps of the plan. Symbols have nominal sizes. `costs` are the measured times of the steps; empty:
/// none.
nlohmann::ordered_json describe_policy(const Program &program, const Rulebook &rulebook, const CompileOptions &options,
                                       const std::vector<StepCost> &costs);

} // namespace scalide
