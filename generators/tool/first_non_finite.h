#pragma once
#include "emit/plan.h"
#include "interpret/interpret.h"
#include "tool/loaded_program.h"

namespace scalide {

/// Returns a text such as `first non-finite: norm_max of x (step.scl:3), step 0 (full_1); it reads x, which is not finite`. `find` returns
/// arguments by name.
std::string to_text(const NonFinite &first, const Plan &plan, const std::function<HostArray(const std::string &)> &find);

/// Interprets a program of base operators in mode `stored`, and sets `text` to a text such as
/// `first non-finite: v130, operator log in loss (step.scl:36), element [3, 7] is -inf`: the first operator that produces an infinity from
/// finite operands, or a NaN from operands without a NaN. Returns the outputs.
std::vector<Array> interpret_until_non_finite(const Program &program, const std::vector<Array> &inputs, const Rulebook &rulebook,
                                              std::string &text);

} // namespace scalide
