#include "schedules/schedule.h"
#include "rulebook/yaml_value.h"
#include "schedules/cpu/kinds.h"
#include "schedules/gpu/kinds.h"
#include "schedules/tables/machine_caches.h"
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

struct Table {
    std::string text;
    std::vector<TileRow> rows;
};

Table read_table(const char *file) {
    std::string text = file ? read_text_file(file) : std::string(tiles_text);
    std::vector<TileRow> rows = parse_tiles(text, file ? file : "schedules/tiles.yaml");
    return {std::move(text), std::move(rows)};
}

/// All entries in their order, and the texts that they come from.
struct Entries {
    Table tuned, base;
    std::vector<TileRow> rows;

    void use(Table table) {
        tuned = std::move(table);
        rows = tuned.rows;
        rows.insert(rows.end(), base.rows.begin(), base.rows.end());
    }
};

Entries &entries() {
    static Entries entries = [] {
        const char *tuned = std::getenv("SCALIDE_TUNED_TILES");
        Entries read{{}, read_table(std::getenv("SCALIDE_TILES")), {}};
        read.use(tuned && *tuned ? read_table(tuned) : Table());
        return read;
    }();
    return entries;
}

const std::vector<TileRow> &rows() { return entries().rows; }

std::string described_caches() {
    std::string text;
    for (const auto &[level, size] : machine_caches()) text += " " + level + "=" + std::to_string(size);
    return text;
}

} // namespace

void use_tiles(const std::string &text, const std::string &file) {
    entries().use(text.empty() ? Table() : Table{text, parse_tiles(text, file)});
}

std::string tile_inputs() { return entries().tuned.text + entries().base.text + described_caches(); }

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
