#pragma once
#include "tool/run_program.h"
#include <limits>

namespace scalide {

/// The severity of a finding: `bad` explains a wrong result, `warn` may explain it, `note` is a fact.
enum class Severity : uint8_t { bad, warn, note };
inline constexpr std::array severity_names = {"bad", "warn", "note"};

/// One thing that is unusual in a run: a sentence with numbers, and what to do.
struct Finding {
    Severity severity;
    std::string kind;
    std::string text, todo;
    int tensor = -1;                                ///< in RunLog::tensors; -1: none
    int64_t step = -1;                              ///< where it begins; -1: it has no step
    int position = std::numeric_limits<int>::max(); ///< of the tensor in the program; a finding about no tensor is last
};

/// Returns the metric that is the loss: `loss`, else the first name that ends so. Empty: none.
std::string loss_of(const RunLog &log);

/// Returns all findings about a run: statistics, loss, events, the difference from another run, and what the files do not tell. The list
/// says so if nothing is unusual.
std::vector<Finding> explain_run(const RunLog &log, const RunWatch &watch, const RunProgram &program, const RunLog *against);

/// The name of a tensor, with its operand and its scope: "x (dot_general.lhs in block1/attention)".
std::string described(const LoggedTensor &tensor);

/// Sorts by severity, then by step, then by the order of the program, then by kind. So the first of several findings in a step is about
/// the tensor from which the others are computed.
void sort_findings(std::vector<Finding> &findings);

} // namespace scalide
