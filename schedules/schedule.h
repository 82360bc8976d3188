#pragma once
#include "schedules/tables/tiles.h"

namespace scalide {

/// Returns the text of tiles.yaml, which is built into this library. The environment variable SCALIDE_TILES may name another file with
/// other numbers. Throws UserError if that file is no valid table.
const std::string &tile_table();
/// Returns the tile numbers for a kernel on a target: the first row of that table that matches.
Tiles choose_tiles(const LoweredKernel &kernel, const Halide::Target &target);
/// Does the same for another table in the format of tiles.yaml.
Tiles choose_tiles(const LoweredKernel &kernel, const Halide::Target &target, const std::string &table);
/// Returns the budgets of that table for lowering on a target: for one kernel kind, or for all.
Tiles choose_budget(std::string_view kind, const Halide::Target &target);
Budgets choose_budgets(const Halide::Target &target);
/// Returns the rate with this name from that table; nothing if it is unknown.
std::optional<Rate> find_rate(std::string_view kind, const std::string &name, const Halide::Target &target);

/// Schedules every Func of the kernel for the target.
void schedule(LoweredKernel &kernel, const Tiles &tiles, const Halide::Target &target);

} // namespace scalide
