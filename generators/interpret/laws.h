#pragma once
#include "rulebook/instance.h"
#include <functional>

namespace scalide {

/// The passes that laws are about. They stand above the interpreter, so they are handed in.
struct LawPasses {
    std::function<Program(const Program &, const Rulebook &, const ScaleSettings &)> propagate_scales;
    /// append_vjp of transforms/passes.h.
    std::function<std::vector<ValueId>(Program &, const Rulebook &, const std::vector<ValueId> &outputs,
                                       const std::vector<ValueId> &cotangents, const std::vector<ValueId> &wrt)>
        append_vjp;
};

struct LawOptions {
    uint64_t seed = 1; ///< draw number i has the seed `seed + i`: a failure is drawn again by its own seed
    int draws = 4;     ///< of letters, dtypes, values and scales, for each check case
};

/// What does not hold, the first of each kind, and what was tried: "2 cases, 3 strategies, gradient, 1 vector".
struct LawReport {
    std::vector<Message> failures;
    std::string ran;
};

/// Checks one rule against its `check`, which must have a case:
///   scale      data * scale equals the value in mode `real` (f64) and, within the tolerance of the dtype, in mode `stored`, for every
///              strategy and rounding, power-of-two, other and zero scales, and scales of 2^+-100 where `data` forms no full values;
///   rescaling  a power of two moved from the data of an operand to its scale changes no bit of the value;
///   gradient   equals central differences; where it is `straight_through`, the cotangent of one operand, or 0 where the rule clips it;
///   vectors    worked by hand.
/// An error is measured against the largest magnitude of the result, or its scale when that is larger. The default tolerance is
/// 4e-6 for f32, 4e-3 for f16, 4e-2 for bf16, 0.3 for f8_e4m3fn and 0.6 for f8_e5m2. A failure:
/// `<file>:<line>: <op>.scale: data * scale must equal the value, got 3, expected 2 at out[1]: x[1] = ..., seed 7`.
LawReport check_laws(const Rule &rule, const Rulebook &rulebook, const LawPasses &passes, const LawOptions &options);

} // namespace scalide
