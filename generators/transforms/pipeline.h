#pragma once
#include "transforms/analysis/fusion_report.h"
#include "transforms/analysis/passes.h"
#include "transforms/numerics/numerics_report.h"
#include <functional>

namespace scalide {

/// The options of compile().
struct CompileOptions {
    Policy policy;
    TargetFacts facts;
    /// Called after each pass with its name. `--dump-after` prints the program here, and tests run the interpreter here.
    std::function<void(const std::string &pass, const Program &)> after_pass;
    FusionReport *fusion = nullptr;       ///< if not null: receives what was fused and why
    PolicyDecisions *decisions = nullptr; ///< if not null: receives the decisions of `assign_numerics`
    /// Check every node against its rule after each pass (Invariant::typed). This takes about as long as the passes. All other invariants
    /// are always checked, except between the passes of fusion, because their kernels are checked at the end.
    bool checks_types = true;
};

/// Runs all passes in order: to_base_operators(), then to_kernels(). Checks after each pass what must hold (transforms/spec/invariants.h).
/// Returns a program of calls to kernels.
Program compile(const Program &program, const Rulebook &rulebook, const CompileOptions &options);

/// Runs the passes up to assign_numerics, without checks. Returns the program with the formats of the policy; its arguments are those of
/// the compiled program. `decisions`, if not null, receives the decisions of the policy.
Program to_formats(const Program &program, const Rulebook &rulebook, const Policy &policy, PolicyDecisions *decisions = nullptr);

/// Runs the passes before fusion: infer_types, inline_calls, simplify, assign_numerics, simplify, propagate_scales, expand, simplify.
Program to_base_operators(const Program &program, const Rulebook &rulebook, const CompileOptions &options);

/// Runs the passes of fusion (transforms/fusion/fuse.h) on a program of base operators.
Program to_kernels(const Program &program, const Rulebook &rulebook, const CompileOptions &options);

/// Returns the names that `--dump-after` accepts, in order.
const std::vector<std::string> &pass_names();

} // namespace scalide
