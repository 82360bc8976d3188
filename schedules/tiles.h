#pragma once
#include "lower/kernel.h"
#include <optional>

namespace scalide {

/// Tile numbers of one kind of kernel: a row of tiles.yaml, chosen by target features and extents. They are part of a kernel's cache key.
using Tiles = std::map<std::string, int>;

/// A row of tiles.yaml: for which kernels it is, and its numbers, `tiles` for their schedule or a `budget` for their lowering.
struct TileRow {
    struct Range {
        int64_t least, most;
    };
    int line = 0; ///< of the table
    std::string kind;
    bool gpu = false; ///< for GPUs; otherwise for CPUs
    std::string form; ///< of schedules/tile_words.h; empty: the kind has one
    std::vector<Halide::Target::Feature> features;
    std::map<std::string, Range> extents;
    std::optional<Tiles> tiles, budget; ///< one of them
};

/// Reads a table in the words of tiles.yaml. UserError with file and line: where it is none, and where no kernel can come to a row.
std::vector<TileRow> parse_tiles(const std::string &text, const std::string &file);

/// The numbers of the first row that fits the kernel and the target. UserError: no row does.
const Tiles &choose_row(const std::vector<TileRow> &rows, const LoweredKernel &kernel, const Halide::Target &target);

/// The budget of a kind: the numbers of the first row that fits the target, none where lowering reads none. UserError: no row does.
Tiles choose_budget(const std::vector<TileRow> &rows, std::string_view kind, const Halide::Target &target);
/// Those of all kinds.
Budgets choose_budgets(const std::vector<TileRow> &rows, const Halide::Target &target);

} // namespace scalide
