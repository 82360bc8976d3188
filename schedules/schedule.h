#pragma once
#include "schedules/tiles.h"

namespace scalide {

/// tiles.yaml as it was when this library was built, or the file that SCALIDE_TILES in the environment names: other numbers to try. Throws
/// UserError when that is no such table.
const std::string &tile_table();
/// The tile numbers for this kernel on this target: the first row of that table that matches.
Tiles choose_tiles(const LoweredKernel &kernel, const Halide::Target &target);
/// The same of another table, in the words of tiles.yaml.
Tiles choose_tiles(const LoweredKernel &kernel, const Halide::Target &target, const std::string &table);
/// What that table says lowering may use on this target, for kernels of one kind, and for all of them.
Tiles choose_budget(std::string_view kind, const Halide::Target &target);
Budgets choose_budgets(const Halide::Target &target);

/// What schedules the kernels of one kind: schedules/cpu/<kind>.cpp, for GPUs schedules/gpu/<kind>.cpp.
using Schedule = void(LoweredKernel &kernel, const Tiles &tiles, const Halide::Target &target);

/// Threads that all blocks of a kernel on a multiprocessor have to be, at least; 0: any number. Tile `resident`.
inline int resident_threads(const Tiles &tiles) {
    const auto found = tiles.find("resident");
    return found == tiles.end() ? 0 : found->second;
}

/// Schedules every Func of the kernel for the target, by its kind.
void schedule(LoweredKernel &kernel, const Tiles &tiles, const Halide::Target &target);

} // namespace scalide
