#pragma once
#include "schedules/tiles.h"

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

/// Schedules kernels of one kind: schedules/cpu/<kind>.cpp for CPUs, schedules/gpu/<kind>.cpp for GPUs.
using Schedule = void(LoweredKernel &kernel, const Tiles &tiles, const Halide::Target &target);

/// Returns how many threads of a kernel must be resident on a multiprocessor at least; 0: any number. Tile `resident`.
inline int resident_threads(const Tiles &tiles) {
    const auto found = tiles.find("resident");
    return found == tiles.end() ? 0 : found->second;
}

/// Schedules every Func of the kernel for the target.
void schedule(LoweredKernel &kernel, const Tiles &tiles, const Halide::Target &target);

} // namespace scalide
