#pragma once
#include "emit/plan.h"
#include "interpret/interpret.h"
#include "tool/loaded_program.h"
#include <optional>

namespace scalide {

/// Returns a text such as `first non-finite: norm_max of x (step.scl:3), step 0 (full_1); it reads x, which is not finite`. `find` returns
/// arguments by name.
std::string to_text(const NonFinite &first, const Plan &plan, const std::function<HostArray(const std::string &)> &find);

/// The first element that an operator made infinite from finite operands, or NaN from operands without a NaN.
struct NonFiniteElement {
    Origin origin; ///< the tensor; the operator of the program, its scope, direction and line
    /// Empty: the tensor itself is not finite. "derived from": a rounded or scaled copy of the tensor, its amax or a scale. "inside of": an
    /// intermediate value of the composite operator that computes the tensor.
    std::string relation;
    std::string inner; ///< inside of a composite operator: the base operator
    std::vector<int64_t> index;
    std::vector<std::string> axes; ///< by axis: its word, such as the symbol of the batch; empty: it has none
    double value = 0;
    int64_t step = -1; ///< of the innermost loop; -1: in no loop
};

/// Interprets a program and sets `found`. Returns the outputs.
std::vector<Array> interpret_until_non_finite(const Program &program, const std::vector<Array> &inputs, const Rulebook &rulebook, Mode mode,
                                              std::optional<NonFiniteElement> &found);

/// Returns a text such as `first non-finite: v130, operator log in loss, forward (step.scl:36), element [b 3, 7] is -inf`.
std::string to_text(const std::optional<NonFiniteElement> &found, const Program &program);
/// Returns the same as an object, or null.
std::string to_json(const std::optional<NonFiniteElement> &found);

} // namespace scalide
