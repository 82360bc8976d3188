#pragma once
#include "schedules/tables/tiles.h"

namespace scalide {

/// Uses the entries of a table in the format of tiles.yaml before all others; an empty text has none. They replace the entries
/// of the file that SCALIDE_TUNED_TILES names. Throws UserError with a line of `file` if the text is no valid table.
void use_tiles(const std::string &text, const std::string &file);
/// Returns all on which the choice of tile numbers depends, besides kernel and target: the texts of these entries and of tiles.yaml, and
/// the caches of this machine. tiles.yaml is built into this library. The environment variable SCALIDE_TILES may name another file, with
/// other numbers. Throws UserError if that file is no valid table.
std::string tile_inputs();
/// Returns the tile numbers for a kernel on a target: the first row that matches.
Tiles choose_tiles(const LoweredKernel &kernel, const Halide::Target &target);
/// Does the same for one table in the format of tiles.yaml.
Tiles choose_tiles(const LoweredKernel &kernel, const Halide::Target &target, const std::string &table);
/// Returns the budgets for lowering on a target: for one kernel kind, or for all.
Tiles choose_budget(std::string_view kind, const Halide::Target &target);
Budgets choose_budgets(const Halide::Target &target);
/// Returns the rate with this name, or nothing if it is unknown.
std::optional<Rate> find_rate(std::string_view kind, const std::string &name, const Halide::Target &target);

/// Schedules every Func of the kernel for the target.
void schedule(LoweredKernel &kernel, const Tiles &tiles, const Halide::Target &target);

} // namespace scalide
