#pragma once
#include "transforms/analysis/fusion_report.h"
#include "transforms/analysis/passes.h"
#include "transforms/constants/pack_operands.h"
#include "transforms/forms/forms.h"
#include "transforms/fusion/copied_arguments.h"
#include "transforms/numerics/collect_statistics.h"
#include "transforms/numerics/numerics_report.h"
#include <functional>

namespace scalide {

/// The options of compile().
struct CompileOptions {
    Policy policy = {};
    TargetFacts facts = {};
    /// Called with each program that a pass made, and the name of the pass. `--dump-after` prints the program here, and tests run the
    /// interpreter here.
    std::function<void(const std::string &pass, const Program &)> after_pass = {};
    /// Check every node against its rule after each pass (Invariant::typed). This takes about as long as the passes. All other invariants
    /// are always checked, except between the passes of fusion, because their kernels are checked at the end.
    bool checks_types = true;
    Unroll unroll = Unroll::short_ones;         ///< which loops and branches become nodes where loops can run
    bool takes_notes = false;                   ///< fill in Compiled::notes
    bool splits_constants = false;              ///< nodes that depend only on constants run once at bind (split_constants)
    std::vector<StatisticsRow> statistics = {}; ///< rows of which tensors get statistics, which are further results; empty: none
    ChoosePanels choose_panels = {};            ///< the panels of packed operands (pack_operands); empty: none
};

/// What passes decided about a program, for reports.
struct Notes {
    PolicyDecisions decisions;                ///< of assign_numerics
    ProductFormats formats;                   ///< the same, counted
    std::vector<std::string> left_loops;      ///< a sentence for each product and sum of all steps that runs before or after its loop
    FusionReport fusion;                      ///< of the kernels of the main program
    std::vector<CopiedArgument> copied;       ///< arguments that each run copies
    std::vector<std::string> left_to_kernels; ///< a sentence for each matmul with scales that no library accepts
};

/// The parts of the list of passes, in order. A stage ends with a program in the state that its comment describes.
enum class Stage {
    calls,     ///< typed, without calls
    formats,   ///< with the formats of the policy; its arguments are those of the compiled program
    base,      ///< in base operators
    constants, ///< what depends on constants alone is in the prepare program
    stores,    ///< shaped for fusion; values that kernels will store have their formats
    kernels,   ///< calls of kernels
    forms,     ///< all forms of the program
};

/// What the passes make of a program for one machine.
struct Compiled {
    MachineForms<Form> forms;
    std::vector<CollectedStatistic> statistics; ///< of the main program
    Notes notes;
};

/// Runs the passes up to the end of a stage. Checks after each pass what must hold (transforms/spec/invariants.h). Before Stage::forms,
/// only the main program is complete.
Compiled run_passes(const Program &program, const Rulebook &rulebook, const CompileOptions &options, Stage last);

/// Runs the passes up to Stage::kernels. Returns a program of calls to kernels.
Program compile(const Program &program, const Rulebook &rulebook, const CompileOptions &options);

/// Runs the passes up to Stage::base.
Program to_base_operators(const Program &program, const Rulebook &rulebook, const CompileOptions &options);

/// Returns the names that `--dump-after` accepts, in order.
const std::vector<std::string> &pass_names();
/// Returns true if the programs that a pass makes have the formats of the policy.
bool has_formats(std::string_view pass);

} // namespace scalide
