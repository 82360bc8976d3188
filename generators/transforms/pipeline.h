#pragma once
#include "transforms/fusion/fusion_report.h"
#include "transforms/numerics/numerics_report.h"
#include "transforms/passes.h"
#include <functional>

namespace scalide {

/// What `compile` is told besides the program.
struct CompileOptions {
    Policy policy;
    TargetFacts facts;
    /// Called after each pass with its name; `--dump-after` prints here, tests run the interpreter here.
    std::function<void(const std::string &pass, const Program &)> after_pass;
    FusionReport *fusion = nullptr;                     ///< filled when it is there: what was fused and why
    std::vector<NumericsDecision> *decisions = nullptr; ///< likewise: what `assign_numerics` decided
    /// After each pass every node is held to its rule (Invariant::typed) as well: that takes about as long as
    /// the passes. All other invariants are always checked, but between the passes of fusion, whose kernels are checked in the end.
    bool checks_types = true;
};

/// All passes in order: to_base_operators, then to_kernels. What holds after each (transforms/spec/invariants.h) is checked. The result is
/// a program of calls to kernels.
Program compile(const Program &program, const Rulebook &rulebook, const CompileOptions &options);

/// The passes that know no kernels: infer_types, inline_calls, simplify, assign_numerics, simplify, propagate_scales, expand, simplify.
Program to_base_operators(const Program &program, const Rulebook &rulebook, const CompileOptions &options);

/// The passes of fusion (transforms/fusion/fuse.h) on a program of base operators.
Program to_kernels(const Program &program, const Rulebook &rulebook, const CompileOptions &options);

/// The names that `--dump-after` takes, in order.
const std::vector<std::string> &pass_names();

} // namespace scalide
