#pragma once
#include "ir/program.h"
#include "transforms/analysis/target_facts.h"

namespace scalide {

/// Moves scales out of matmuls. An operand may consist of encoded f8 values times one scale, or times one scale for each row or column that
/// is not contracted. The matmul then reads the encoded values, and the sums are multiplied by the scales afterwards. Far more GPUs have a
/// library matmul for encoded values than for values times scales. Nothing changes if the target's library accepts the scales, or if it has
/// no matmul for the encoded values. Sums are rounded before they are scaled, not after.
Program factor_scales(const Program &program, const TargetFacts &facts);

} // namespace scalide
