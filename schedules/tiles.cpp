#include "schedules/tiles.h"
#include "rulebook/nearest.h"
#include "schedules/table_rows.h"
#include "schedules/tile_words.h"
#include <algorithm>

namespace scalide {

namespace {

constexpr int largest_tile = 1 << 20;
constexpr int64_t any_extent = std::numeric_limits<int64_t>::max();

std::vector<std::string> kinds() {
    std::vector<std::string> names;
    for (const ScheduledKernels &kernels : scheduled_kernels())
        if (!kernels.gpu) names.emplace_back(kernels.kind);
    names.erase(std::ranges::unique(names).begin(), names.end());
    return names;
}

std::vector<std::string> forms(const TileRow &row) {
    std::vector<std::string> names;
    for (const ScheduledKernels &kernels : scheduled_kernels())
        if (kernels.kind == row.kind && kernels.gpu == row.gpu && !kernels.form.empty()) names.emplace_back(kernels.form);
    return names;
}

std::string form_in(const YamlValue &row, const YamlValue *form, const TileRow &so_far) {
    const std::vector<std::string> known = forms(so_far);
    const std::string where = so_far.gpu ? " on GPUs" : " on CPUs";
    if (known.empty() && form) form->fail("must not be there: kernels of kind " + so_far.kind + where + " have one form");
    if (!known.empty() && !form) row.called(row.path() + ".form").fail("must be " + known[0] + " or " + known[1] + where, "none");
    return form ? form->word(known) : "";
}

Halide::Target::Feature feature_of(const YamlValue &word) {
    const auto feature = Halide::Target::feature_from_name(word.text());
    if (feature != Halide::Target::FeatureEnd) return feature;
    std::vector<std::string> names;
    for (int i = 0; i < Halide::Target::FeatureEnd; i++) names.push_back(Halide::Target::feature_to_name(Halide::Target::Feature(i)));
    const std::string near = nearest(word.text(), names);
    word.fail("must be a feature of a Halide target", word.description(), near.empty() ? "" : "Did you mean '" + near + "'?");
}

TileRow::Range range_of(const YamlValue &value) {
    const std::vector<YamlValue> range = value.elements();
    if (range.empty() || range.size() > 2) value.fail("must be [least, most] or [least]", std::to_string(range.size()) + " numbers");
    const int64_t least = integer_in(range[0], 0, any_extent);
    return {least, range.size() > 1 ? integer_in(range[1], least, any_extent) : any_extent};
}

std::map<std::string, TileRow::Range> ranges_of(const YamlValue &extents, const std::string &kind) {
    const std::vector<std::string> known = extents_of(kind);
    if (known.empty()) extents.fail("must not be there: no extents of kernels of kind " + kind + " are known");
    std::map<std::string, TileRow::Range> ranges;
    for (const auto &[name, range] : extents.entries()) {
        if (std::ranges::find(known, name) == known.end()) range.fail("unknown key", "", suggestion(name, known));
        ranges.emplace(name, range_of(range));
    }
    return ranges;
}

Tiles tiles_of(const YamlValue &value, const TileRow &row) {
    const auto is_asked = [&](const ScheduledKernels &k) { return k.kind == row.kind && k.gpu == row.gpu && k.form == row.form; };
    std::vector<Key> keys;
    for (const std::string_view name : std::ranges::find_if(scheduled_kernels(), is_asked)->tiles) keys.push_back({name, Key::required});
    const YamlFields fields = value.fields(keys);
    Tiles tiles;
    for (const Key &key : keys) {
        const std::string name(key.name);
        tiles.emplace(name, int(integer_in(*fields.find(name), may_be_zero(name) ? 0 : 1, largest_tile)));
    }
    return tiles;
}

/// Every kernel that comes to `other` comes to `row`.
bool covers(const TileRow &row, const TileRow &other) {
    const auto is_feature = [&](Halide::Target::Feature f) { return std::ranges::find(other.features, f) != other.features.end(); };
    const auto holds_range = [&](const auto &condition) {
        const auto found = other.extents.find(condition.first);
        return found != other.extents.end() && found->second.least >= condition.second.least && found->second.most <= condition.second.most;
    };
    return row.kind == other.kind && row.gpu == other.gpu && row.form == other.form && std::ranges::all_of(row.features, is_feature) &&
           std::ranges::all_of(row.extents, holds_range);
}

TileRow row_of(const YamlValue &node) {
    const std::string name = node.text_of("kind");
    const YamlValue value = name.empty() ? node : node.called(name);
    const YamlFields fields =
        value.fields({{"kind", Key::required}, {"gpu"}, {"form"}, {"features"}, {"extents"}, {"tiles", Key::required}, {"measured"}});
    TileRow row;
    row.line = value.location().line;
    row.kind = fields.find("kind")->word(kinds());
    if (const YamlValue *gpu = fields.find("gpu")) row.gpu = gpu->flag();
    row.form = form_in(value, fields.find("form"), row);
    if (const YamlValue *features = fields.find("features"))
        for (const YamlValue &word : features->elements()) row.features.push_back(feature_of(word));
    if (const YamlValue *extents = fields.find("extents")) row.extents = ranges_of(*extents, row.kind);
    if (const YamlValue *measured = fields.find("measured")) measured->text();
    row.tiles = tiles_of(*fields.find("tiles"), row);
    return row;
}

bool fits(const TileRow &row, const LoweredKernel &kernel, const Halide::Target &target) {
    const auto is_feature = [&](Halide::Target::Feature feature) { return target.has_feature(feature); };
    const auto is_extent = [&](const auto &condition) {
        const Extent &extent = extent_of(kernel, condition.first);
        const int64_t size = extent.is_static() ? extent.value() : any_extent;
        return size >= condition.second.least && size <= condition.second.most;
    };
    return row.kind == kernel.kind && row.gpu == target.has_gpu_feature() && (row.form.empty() || row.form == form_of(kernel)) &&
           std::ranges::all_of(row.features, is_feature) && std::ranges::all_of(row.extents, is_extent);
}

} // namespace

std::vector<TileRow> parse_tiles(const std::string &text, const std::string &file) {
    std::vector<TileRow> rows;
    for (const YamlValue &node : read_rows(text, file)) {
        const TileRow row = row_of(node);
        for (const TileRow &before : rows)
            if (covers(before, row))
                node.called(row.kind).fail("must fit kernels that the row on line " + std::to_string(before.line) + " leaves", "none",
                                           "Put it before that row");
        rows.push_back(row);
    }
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
