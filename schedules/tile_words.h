#pragma once
#include "lower/kernel.h"
#include <string_view>

// The words of tiles.yaml: which kernels its rows can be for, and which numbers lowering and schedules read.
namespace scalide {

/// Kernels whose schedule reads the same tile numbers: those of a kind on CPUs or on GPUs, or where a kind has several schedules those of
/// one `form`.
struct ScheduledKernels {
    std::string_view kind;
    bool gpu;
    std::string_view form; ///< empty: all kernels of the kind
    std::vector<std::string_view> tiles;
};
const std::vector<ScheduledKernels> &scheduled_kernels();

/// A number that the row of `budget` has for a kind on CPUs or on GPUs.
struct BudgetWord {
    std::string_view kind;
    bool gpu;
    std::string_view name;
    int Budgets::*number;
};
const std::vector<BudgetWord> &budget_words();

/// Tile numbers and budgets that may be 0, which then means: none.
bool may_be_zero(std::string_view name);

/// The form of a kernel, in the words of the table; empty where its kind has one on all targets.
std::string_view form_of(const LoweredKernel &kernel);

/// The loop extents that rows of this kind may ask about, and one of them.
std::vector<std::string> extents_of(std::string_view kind);
const Extent &extent_of(const LoweredKernel &kernel, std::string_view name);

} // namespace scalide
