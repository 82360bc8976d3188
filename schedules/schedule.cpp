#include "schedules/schedule.h"
#include "rulebook/yaml_value.h"
#include "schedules/cpu/kinds.h"
#include "schedules/gpu/kinds.h"
#include "schedules/tables/tiles_text.h"
#include <cstdlib>

namespace scalide {
namespace {

using Schedules = std::map<std::string, Schedule *>;

const Schedules cpu_schedules = {
    {"scalar", schedule_scalar},     {"map", schedule_map},       {"row", schedule_row},
    {"column", schedule_column},     {"full", schedule_full},     {"transpose", schedule_transpose},
    {"contract", schedule_contract}, {"scan", schedule_scan},     {"scatter", schedule_scatter},
    {"sort", schedule_sort},         {"window", schedule_window}, {"small", schedule_small},
};

const Schedules gpu_schedules = {
    {"scalar", gpu::schedule_scalar},     {"map", gpu::schedule_map},       {"row", gpu::schedule_row},
    {"column", gpu::schedule_column},     {"full", gpu::schedule_full},     {"transpose", gpu::schedule_transpose},
    {"contract", gpu::schedule_contract}, {"scan", gpu::schedule_scan},     {"scatter", gpu::schedule_scatter},
    {"sort", gpu::schedule_sort},         {"window", gpu::schedule_window}, {"tiled", gpu::schedule_tiled},
};

const std::vector<TileRow> &rows() {
    const char *given = std::getenv("SCALIDE_TILES");
    static const std::vector<TileRow> rows = parse_tiles(tile_table(), given ? given : "schedules/tiles.yaml");
    return rows;
}

} // namespace

const std::string &tile_table() {
    static const std::string table = [] {
        const char *file = std::getenv("SCALIDE_TILES");
        return file ? read_text_file(file) : std::string(tiles_text);
    }();
    return table;
}

Tiles choose_tiles(const LoweredKernel &kernel, const Halide::Target &target) { return choose_row(rows(), kernel, target); }

Tiles choose_tiles(const LoweredKernel &kernel, const Halide::Target &target, const std::string &table) {
    return choose_row(parse_tiles(table, "tiles.yaml"), kernel, target);
}

Tiles choose_budget(std::string_view kind, const Halide::Target &target) { return choose_budget(rows(), kind, target); }
Budgets choose_budgets(const Halide::Target &target) { return choose_budgets(rows(), target); }
std::optional<Rate> find_rate(std::string_view kind, const std::string &name, const Halide::Target &target) {
    return find_rate(rows(), kind, name, target);
}

void schedule(LoweredKernel &kernel, const Tiles &tiles, const Halide::Target &target) {
    const Schedules &schedules = target.has_gpu_feature() ? gpu_schedules : cpu_schedules;
    const auto found = schedules.find(kernel.kind);
    internal_check(found != schedules.end(), "kernels of kind " + kernel.kind + " have no schedule");
    if (!target.has_gpu_feature()) {
        for (Halide::Func &stage : kernel.shared) stage.compute_root();
    }
    found->second(kernel, tiles, target);
}

} // namespace scalide
