#include "schedules/schedule.h"
#include "schedules/cpu/kinds.h"
#include "schedules/cuda/kinds.h"
#include "schedules/tiles_text.h"
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <yaml-cpp/yaml.h>

namespace scalide {
namespace {

/// A symbolic extent is large for a condition.
int64_t size_of_extent(const Extent &extent) { return extent.is_static() ? extent.value() : std::numeric_limits<int64_t>::max(); }

/// Rows without `gpu` are for CPUs.
bool is_for(const YAML::Node &row, const Halide::Target &target) { return row["gpu"].as<bool>(false) == target.has_gpu_feature(); }

bool has_features(const YAML::Node &row, const Halide::Target &target) {
    for (const YAML::Node &feature : row["features"]) {
        if (!target.has_feature(Halide::Target::feature_from_name(feature.as<std::string>()))) {
            return false;
        }
    }
    return true;
}

bool has_facts(const YAML::Node &row, const LoweredKernel &kernel) {
    for (const auto &condition : row["facts"]) {
        auto fact = kernel.facts.find(condition.first.as<std::string>());
        if (fact == kernel.facts.end() || to_string(fact->second) != condition.second.as<std::string>()) {
            return false;
        }
    }
    return true;
}

bool has_extents(const YAML::Node &row, const LoweredKernel &kernel) {
    for (const auto &condition : row["extents"]) {
        auto extent = kernel.extents.find(condition.first.as<std::string>());
        if (extent == kernel.extents.end()) {
            return false;
        }
        const int64_t size = size_of_extent(extent->second);
        const YAML::Node &range = condition.second;
        if (size < range[0].as<int64_t>() || (range.size() > 1 && size > range[1].as<int64_t>())) {
            return false;
        }
    }
    return true;
}

using Schedules = std::map<std::string, Schedule *>;

const Schedules cpu_schedules = {
    {"scalar", schedule_scalar},     {"map", schedule_map},       {"row", schedule_row},
    {"column", schedule_column},     {"full", schedule_full},     {"transpose", schedule_transpose},
    {"contract", schedule_contract}, {"scan", schedule_scan},     {"scatter", schedule_scatter},
    {"sort", schedule_sort},         {"window", schedule_window}, {"tiled", schedule_tiled},
};

const Schedules gpu_schedules = {
    {"scalar", cuda::schedule_scalar},     {"map", cuda::schedule_map},       {"row", cuda::schedule_row},
    {"column", cuda::schedule_column},     {"full", cuda::schedule_full},     {"transpose", cuda::schedule_transpose},
    {"contract", cuda::schedule_contract}, {"scan", cuda::schedule_scan},     {"scatter", cuda::schedule_scatter},
    {"sort", cuda::schedule_sort},         {"window", cuda::schedule_window}, {"tiled", cuda::schedule_tiled},
};

Tiles choose(const YAML::Node &rows, const LoweredKernel &kernel, const Halide::Target &target) {
    for (const YAML::Node &row : rows) {
        if (row["kind"].as<std::string>() == kernel.kind && is_for(row, target) && has_features(row, target) && has_facts(row, kernel) &&
            has_extents(row, kernel)) {
            return row["tiles"].as<Tiles>();
        }
    }
    throw InternalError("internal error: tiles.yaml has no row for a kernel of kind " + kernel.kind);
}

/// False for what would be no table of tiles: rows of a kind with its numbers.
bool is_table(const std::string &text) try {
    const YAML::Node rows = YAML::Load(text);
    return rows.IsSequence() && rows.size() > 0 && std::all_of(rows.begin(), rows.end(), [](const YAML::Node &row) {
               return row.IsMap() && row["kind"] && row["tiles"] && row["tiles"].IsMap();
           });
} catch (const YAML::Exception &) {
    return false;
}

} // namespace

const std::string &tile_table() {
    static const std::string table = [] {
        const char *file = std::getenv("SCALIDE_TILES");
        if (!file) return std::string(tiles_text);
        std::ifstream in(file);
        std::stringstream text;
        if (in) text << in.rdbuf();
        if (!is_table(text.str())) throw UserError({Location(), "SCALIDE_TILES", "must be a file like tiles.yaml", file, ""});
        return text.str();
    }();
    return table;
}

Tiles choose_tiles(const LoweredKernel &kernel, const Halide::Target &target) {
    static const YAML::Node rows = YAML::Load(tile_table());
    return choose(rows, kernel, target);
}

Tiles choose_tiles(const LoweredKernel &kernel, const Halide::Target &target, const std::string &table) {
    return choose(YAML::Load(table), kernel, target);
}

void schedule(LoweredKernel &kernel, const Tiles &tiles, const Halide::Target &target) {
    const Schedules &schedules = target.has_gpu_feature() ? gpu_schedules : cpu_schedules;
    const auto found = schedules.find(kernel.kind);
    internal_check(found != schedules.end(), "kernels of kind " + kernel.kind + " have no schedule");
    if (!target.has_gpu_feature()) {
        for (Halide::Func &stage : kernel.stages["shared"]) stage.compute_root();
    }
    found->second(kernel, tiles, target);
}

} // namespace scalide
