#include "schedules/tiles.h"
#include "schedules/table_rows.h"
#include <algorithm>

namespace scalide {

namespace {

constexpr int largest = 1 << 20;

Halide::Target::Feature feature_of(const YAML::Node &word) {
    const auto feature = Halide::Target::feature_from_name(word.as<std::string>());
    if (feature == Halide::Target::FeatureEnd) refuse(word, "features must be Halide's, got " + word.as<std::string>());
    return feature;
}

TileRow::Range range_of(const YAML::Node &range) {
    if (!range.IsSequence() || range.size() < 1 || range.size() > 2) refuse(range, "extents must be [least, most] or [least]");
    return {range[0].as<int64_t>(), range.size() > 1 ? range[1].as<int64_t>() : std::numeric_limits<int64_t>::max()};
}

TileRow row_of(const YAML::Node &node) {
    TileRow row{needed(node, "kind").as<std::string>(), node["gpu"].as<bool>(false), {}, {}, {}, {}};
    for (const YAML::Node &word : node["features"]) row.features.push_back(feature_of(word));
    for (const auto &fact : node["facts"]) row.facts.emplace(fact.first.as<std::string>(), fact.second.as<std::string>());
    for (const auto &extent : node["extents"]) row.extents.emplace(extent.first.as<std::string>(), range_of(extent.second));
    const YAML::Node tiles = needed(node, "tiles");
    if (!tiles.IsMap()) refuse(tiles, "tiles must be a map from names to numbers");
    for (const auto &tile : tiles) {
        const int number = tile.second.as<int>();
        if (number < 0 || number > largest)
            refuse(tile.second, "tiles must be in [0, " + std::to_string(largest) + "], got " + std::to_string(number));
        row.tiles.emplace(tile.first.as<std::string>(), number);
    }
    return row;
}

/// What rows may ask about a kernel.
std::map<std::string, std::string> facts_of(const Stages &stages) {
    if (const auto *row = std::get_if<RowStages>(&stages)) return {{"sums", row->sums.running.defined() ? "1" : "0"}};
    if (std::holds_alternative<WindowStages>(stages)) return {{"operator", "fold"}};
    if (std::holds_alternative<ConvolutionStages>(stages)) return {{"operator", "convolution"}};
    return {};
}
std::map<std::string, Extent> extents_of(const Stages &stages) {
    if (const auto *row = std::get_if<RowStages>(&stages)) return {{"rows", row->rows}, {"columns", row->columns}};
    const auto *c = std::get_if<ContractStages>(&stages);
    return c ? std::map<std::string, Extent>{{"batch", c->batch}, {"m", c->rows}, {"n", c->columns}, {"k", c->depth}}
             : std::map<std::string, Extent>();
}

bool fits(const TileRow &row, const LoweredKernel &kernel, const Halide::Target &target) {
    const auto is_feature = [&](Halide::Target::Feature feature) { return target.has_feature(feature); };
    const std::map<std::string, std::string> facts = facts_of(kernel.stages);
    const std::map<std::string, Extent> extents = extents_of(kernel.stages);
    const auto is_fact = [&](const auto &condition) {
        const auto fact = facts.find(condition.first);
        return fact != facts.end() && fact->second == condition.second;
    };
    const auto is_extent = [&](const auto &condition) {
        const auto extent = extents.find(condition.first);
        if (extent == extents.end()) return false;
        const int64_t size = extent->second.is_static() ? extent->second.value() : std::numeric_limits<int64_t>::max();
        return size >= condition.second.least && size <= condition.second.most;
    };
    return row.kind == kernel.kind && row.gpu == target.has_gpu_feature() && std::ranges::all_of(row.features, is_feature) &&
           std::ranges::all_of(row.facts, is_fact) && std::ranges::all_of(row.extents, is_extent);
}

} // namespace

std::vector<TileRow> parse_tiles(const std::string &text, const std::string &file) {
    std::vector<TileRow> rows;
    read_rows(text, file, [&](const YAML::Node &row) { rows.push_back(row_of(row)); });
    return rows;
}

const Tiles &choose_row(const std::vector<TileRow> &rows, const LoweredKernel &kernel, const Halide::Target &target) {
    for (const TileRow &row : rows) {
        if (fits(row, kernel, target)) return row.tiles;
    }
    throw UserError({Location(), "tiles", "must have a row for kernels of kind " + kernel.kind + " on " + target.to_string(), "none",
                     "Complete the table that SCALIDE_TILES names"});
}

} // namespace scalide
