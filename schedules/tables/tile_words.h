#pragma once
#include "lower/kernel/budgets.h"
#include "lower/kernel/lowered_kernel.h"
#include <string_view>

// The keys of tiles.yaml: the kernels for which rows may exist, and the numbers that lowering and schedules read.
namespace scalide {

/// Kernels whose schedule reads the same tile numbers: all kernels of a kind on CPUs or on GPUs. If a kind has several schedules, all
/// kernels of one `form`.
struct ScheduledKernels {
    std::string_view kind;
    bool gpu;
    std::string_view form; ///< empty: all kernels of the kind
    std::vector<std::string_view> tiles;
};
const std::vector<ScheduledKernels> &scheduled_kernels();

/// A number in the `budget` row of a kind on CPUs or on GPUs.
struct BudgetWord {
    std::string_view kind;
    bool gpu;
    std::string_view name;
    int Budgets::*number;
};
const std::vector<BudgetWord> &budget_words();

/// Returns the names of the rates that rows of a kind may have (rate_name, lower/contract_form.h). Empty for most kinds.
std::vector<std::string_view> rate_words(std::string_view kind, bool gpu);

/// True for tile numbers and budgets that may be 0, which means none.
bool may_be_zero(std::string_view name);

/// Returns the form of a kernel as in the table. Empty if its kind has only one form on all targets.
std::string_view form_of(const LoweredKernel &kernel);

/// The loop extents that conditions of this kind's rows may use, and the value of one.
std::vector<std::string> extents_of(std::string_view kind);
const Extent &extent_of(const LoweredKernel &kernel, std::string_view name);

} // namespace scalide
