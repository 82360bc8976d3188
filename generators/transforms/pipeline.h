#pragma once
#include "transforms/fusion_report.h"
#include "transforms/numerics_report.h"
#include "transforms/passes.h"
#include <functional>

namespace scalide {

/// What `compile` is told besides the program.
struct CompileOptions {
    Policy policy;
    TargetFacts facts;
    /// Called after each pass with its name; `--dump-after` prints here, tests run the interpreter here.
    std::function<void(const std::string &pass, const Program &)> after_pass;
    FusionReport *fusion = nullptr;                     ///< filled when it is there: what `fuse` did and why
    std::vector<NumericsDecision> *decisions = nullptr; ///< likewise: what `assign_numerics` decided
};

/// All passes in order, `verify` after each: infer_types, inline_calls, simplify, assign_numerics, simplify, propagate_scales, expand,
/// simplify, fuse. The result is a program of calls to kernels.
Program compile(const Program &program, const Rulebook &rulebook, const CompileOptions &options);

/// The names that `--dump-after` takes, in order.
const std::vector<std::string> &pass_names();

} // namespace scalide
