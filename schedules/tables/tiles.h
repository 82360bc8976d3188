#pragma once
#include "lower/kernel/budgets.h"
#include "lower/kernel/lowered_kernel.h"
#include <optional>

namespace scalide {

/// Tile numbers of a kernel: a row of tiles.yaml, chosen by target features and extents. They are part of a kernel's cache key.
using Tiles = std::map<std::string, int>;

/// A row of tiles.yaml: its conditions, and either `tiles` for the schedule, a `budget` for lowering, or `rates` for reports.
struct TileRow {
    struct Range {
        int64_t least, most;
    };
    int line = 0; ///< line in the table
    std::string kind;
    bool gpu = false; ///< true: for GPUs; false: for CPUs
    std::string form; ///< see schedules/tables/tile_words.h; empty: the kind has only one form
    std::vector<Halide::Target::Feature> features;
    std::map<std::string, Range> extents;
    std::map<std::string, Range> caches;       ///< KiB of the caches of this machine (machine_caches.h); only if the target is this machine
    std::string device, date;                  ///< where and when the numbers were measured; empty: not told
    std::optional<Tiles> tiles, budget, rates; ///< exactly one of them is set
};

/// True if `row` matches every kernel that `other` matches, and both are for the same reader: tiles, a budget or rates.
bool covers(const TileRow &row, const TileRow &other);

/// Parses a table in the format of tiles.yaml. Throws UserError with file and line if the table is invalid, or if earlier rows cover a row
/// completely.
std::vector<TileRow> parse_tiles(const std::string &text, const std::string &file);

/// Returns the numbers of the first row that matches the kernel and the target. Throws UserError if no row does.
const Tiles &choose_row(const std::vector<TileRow> &rows, const LoweredKernel &kernel, const Halide::Target &target);

/// Returns the budget of a kind: the numbers of the first row that matches the target. Empty if lowering reads no budget for the kind.
/// Throws UserError if no row matches.
Tiles choose_budget(const std::vector<TileRow> &rows, std::string_view kind, const Halide::Target &target);
/// Returns the budgets of all kinds.
Budgets choose_budgets(const std::vector<TileRow> &rows, const Halide::Target &target);

/// The speed of a form of matmuls or convolutions, measured on large ones.
struct Rate {
    int percent;        ///< of the speed of f32
    std::string device; ///< on which it was measured
    std::string date;
};
/// Returns the rate with this name (rate_name, lower/contract_form.h) from the first row of a kind that matches the target and has
/// it. Nothing if it is unknown.
std::optional<Rate> find_rate(const std::vector<TileRow> &rows, std::string_view kind, const std::string &name,
                              const Halide::Target &target);

/// Schedules kernels of one kind: schedules/cpu/<kind>.cpp for CPUs, schedules/gpu/<kind>.cpp for GPUs.
using Schedule = void(LoweredKernel &kernel, const Tiles &tiles, const Halide::Target &target);

/// Returns how many threads of a kernel must be resident on a multiprocessor at least; 0: any number. Tile `resident`.
inline int resident_threads(const Tiles &tiles) {
    const auto found = tiles.find("resident");
    return found == tiles.end() ? 0 : found->second;
}

} // namespace scalide
