#pragma once
#include "rulebook/instance.h"
#include <functional>

namespace scalide {

/// The passes that the laws test. They belong to a layer above the interpreter, so the caller provides them.
struct LawPasses {
    std::function<Program(const Program &, const Rulebook &, const ScaleSettings &)> propagate_scales;
    /// append_vjp of transforms/analysis/passes.h.
    std::function<std::vector<ValueId>(Program &, const Rulebook &, const std::vector<ValueId> &outputs,
                                       const std::vector<ValueId> &cotangents, const std::vector<ValueId> &wrt)>
        append_vjp;
};

struct LawOptions {
    uint64_t seed = 1; ///< draw number i has the seed `seed + i`, so the seed of a failure reproduces it
    int draws = 4;     ///< number of draws of letters, dtypes, values and scales for each check case
};

/// The first failure of each law, and what was tested: "2 cases, 3 strategies, gradient, 1 vector".
struct LawReport {
    std::vector<Message> failures;
    std::string ran;
};

/// Checks one rule against its `check`, which must have a case:
///   scale      data * scale equals the value in mode `real` (f64) and, within the tolerance of the dtype, in mode `stored`. This is
///              tested for every strategy and rounding, and for power-of-two, other and zero scales. Scales of 2^+-100 are tested if
///              `data` does not compute data * scale.
///   rescaling  Moving a power of two from the data of an operand to its scale changes no bit of the value.
///   gradient   The gradient equals central differences. A `straight_through` gradient is the cotangent of a result for one operand,
///              or 0 where the rule clips it.
///   vectors    The results of the test vectors are correct.
/// An error is relative to the largest magnitude of the result, or to its scale if that is larger. The default tolerance is
/// 4e-6 for f32, 4e-3 for f16, 4e-2 for bf16, 0.3 for f8_e4m3fn and 0.6 for f8_e5m2. An example of a failure:
/// `<file>:<line>: <op>.scale: data * scale must equal the value, got 3, expected 2 at out[1]: x[1] = ..., seed 7`.
LawReport check_laws(const Rule &rule, const Rulebook &rulebook, const LawPasses &passes, const LawOptions &options);

} // namespace scalide
