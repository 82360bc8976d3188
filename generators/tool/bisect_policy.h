#pragma once
#include "tool/compare_tensors.h"

namespace scalide {

/// What stays wide in one run of a bisection: all else is as in the policy under test.
struct BisectCandidate {
    enum class Kind : uint8_t { scope, rule, tensor };
    Kind kind = Kind::scope;
    std::string name; ///< the scope or the tensor; of a rule, its conditions
    Location rule = {};
    double distance = 0;      ///< of the result from the result under the reference
    double result = 0;        ///< its value; of an array, its norm
    std::string failure = {}; ///< why the program cannot run so; empty: it ran
};

/// Which parts of a policy explain the error of a result.
struct Bisection {
    std::string result;                      ///< its name
    double reference = 0, tested = 0;        ///< its value under the two policies; of an array, its norm
    double distance = 0;                     ///< of the two
    std::vector<BisectCandidate> candidates; ///< by kind, then the best first
    size_t runs = 0;                         ///< of the interpreter

    /// Returns the share of the error that a candidate explains: 1 if the result is that of the reference. NaN if an infinity or a NaN
    /// leaves no share.
    double share(const BisectCandidate &candidate) const { return 1 - candidate.distance / distance; }
};

/// Runs the program once per candidate: first the outermost scopes and, within the scope that explains most, the scopes inside; then the
/// rules of the policy; then the tensors that the policy rounds in that scope. An empty `result` means the first scalar float.
Bisection bisect(const PolicyInputs &inputs, const PolicyRun &reference, const PolicyRun &tested, const Policy &policy,
                 const std::string &result);

std::string to_text(const Bisection &bisection);
/// Returns the bisection as JSON.
std::string to_json(const Bisection &bisection);

} // namespace scalide
