#include "schedules/tables/tiles.h"
#include "lower/halide/amx_feature.h"
#include "rulebook/nearest.h"
#include "schedules/tables/machine_caches.h"
#include "schedules/tables/table_rows.h"
#include "schedules/tables/tile_words.h"
#include <algorithm>

namespace scalide {

namespace {

constexpr int largest = 1 << 20;
constexpr int64_t any_extent = std::numeric_limits<int64_t>::max();

/// Returns the kernel classes that have a schedule for GPUs, or for CPUs.
std::vector<std::string> kinds(bool gpu) {
    std::vector<std::string> names;
    for (const ScheduledKernels &kernels : scheduled_kernels())
        if (kernels.gpu == gpu) names.emplace_back(kernels.kind);
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
    if (known.empty() && form) form->fail("not allowed: kernels of kind " + so_far.kind + where + " have only one form");
    if (!known.empty() && !form) row.called(row.path() + ".form").fail("missing key: must be " + known[0] + " or " + known[1] + where);
    return form ? form->word(known) : "";
}

Halide::Target::Feature feature_of(const YamlValue &word) {
    if (word.text() == "amx") return amx_feature;
    const auto feature = Halide::Target::feature_from_name(word.text());
    if (feature != Halide::Target::FeatureEnd) return feature;
    std::vector<std::string> names{"amx"};
    for (int i = 0; i < Halide::Target::FeatureEnd; i++) names.push_back(Halide::Target::feature_to_name(Halide::Target::Feature(i)));
    word.fail("must be a feature of a Halide target", word.description(), suggestion(word.text(), names, ""));
}

TileRow::Range range_of(const YamlValue &value) {
    const std::vector<YamlValue> range = value.elements();
    if (range.empty() || range.size() > 2) value.fail("must be [minimum, maximum] or [minimum]", std::to_string(range.size()) + " numbers");
    const int64_t least = integer_in(range[0], 0, any_extent);
    return {least, range.size() > 1 ? integer_in(range[1], least, any_extent) : any_extent};
}

using Ranges = std::map<std::string, TileRow::Range>;

Ranges ranges_of(const YamlValue &map, const std::vector<std::string> &known) {
    Ranges ranges;
    for (const auto &[name, range] : map.entries()) {
        if (std::ranges::find(known, name) == known.end()) range.fail_unknown("key", range.path(), suggestion(name, known));
        ranges.emplace(name, range_of(range));
    }
    return ranges;
}

Ranges extents_in(const YamlValue &extents, const std::string &kind) {
    const std::vector<std::string> known = extents_of(kind);
    if (known.empty()) extents.fail("not allowed: kernels of kind " + kind + " have no extents");
    return ranges_of(extents, known);
}

Ranges caches_in(const YamlValue &caches, bool gpu) {
    if (gpu) caches.fail("not allowed: only entries for CPUs have caches");
    return ranges_of(caches, {"l1", "l2", "l3"});
}

std::vector<std::string_view> tile_names(const TileRow &row) {
    const auto is_asked = [&](const ScheduledKernels &k) { return k.kind == row.kind && k.gpu == row.gpu && k.form == row.form; };
    return std::ranges::find_if(scheduled_kernels(), is_asked)->tiles;
}

std::vector<std::string_view> budget_names(std::string_view kind, bool gpu) {
    std::vector<std::string_view> names;
    for (const BudgetWord &word : budget_words())
        if (word.kind == kind && word.gpu == gpu) names.push_back(word.name);
    return names;
}

/// Reads a map from exactly these names to numbers.
Tiles numbers_of(const YamlValue &value, const std::vector<std::string_view> &names) {
    std::vector<Key> keys;
    for (const std::string_view name : names) keys.push_back({name, Key::required});
    const YamlFields fields = value.fields(keys);
    Tiles numbers;
    for (const std::string_view word : names) {
        const std::string name(word);
        numbers.emplace(name, int(integer_in(*fields.find(name), may_be_zero(name) ? 0 : 1, largest)));
    }
    return numbers;
}

/// Reads a budget. Only the target may decide about it.
Tiles budget_of(const YamlValue &value, const TileRow &row, const YamlFields &fields) {
    const std::vector<std::string_view> names = budget_names(row.kind, row.gpu);
    if (names.empty()) value.fail("not allowed: kernels of kind " + row.kind + (row.gpu ? " on GPUs" : " on CPUs") + " have no budget");
    for (const char *key : {"form", "extents", "caches"})
        if (const YamlValue *condition = fields.find(key))
            condition->fail_relation("cannot be used with", "budget", "A budget depends only on the target");
    return numbers_of(value, names);
}

/// Reads rates. Each row has some of them, with the device and the date of the measurement.
Tiles rates_of(const YamlValue &value, const TileRow &row, const YamlFields &fields) {
    const std::vector<std::string_view> names = rate_words(row.kind, row.gpu);
    if (names.empty()) value.fail("not allowed: kernels of kind " + row.kind + (row.gpu ? " on GPUs" : " on CPUs") + " have no rates");
    for (const char *key : {"form", "extents", "caches"})
        if (const YamlValue *condition = fields.find(key))
            condition->fail_relation("cannot be used with", "rates", "A rate depends only on the target");
    if (row.device.empty() || row.date.empty()) value.fail("rates need the keys 'device' and 'date'");
    std::vector<Key> keys;
    for (const std::string_view name : names) keys.push_back({name});
    Tiles rates;
    const YamlFields given = value.fields(keys);
    for (const std::string_view name : names)
        if (const YamlValue *rate = given.find(std::string(name))) rates.emplace(name, int(integer_in(*rate, 1, largest)));
    if (rates.empty()) value.fail("must have at least one rate");
    return rates;
}

/// True if every rate of `other` is also one of `row`. True for rows without rates.
bool has_rates_of(const TileRow &row, const TileRow &other) {
    const auto is_known = [&](const auto &rate) { return row.rates->contains(rate.first); };
    return !other.rates || std::ranges::all_of(*other.rates, is_known);
}

/// True if each condition of `wide` is one of `narrow`, with the same range or a part of it.
bool contains(const Ranges &wide, const Ranges &narrow) {
    return std::ranges::all_of(wide, [&](const auto &condition) {
        const auto found = narrow.find(condition.first);
        return found != narrow.end() && found->second.least >= condition.second.least && found->second.most <= condition.second.most;
    });
}

TileRow row_of(const YamlValue &node) {
    const std::string name = node.text_of("kind");
    const YamlValue value = name.empty() ? node : node.called(name);
    const YamlFields fields = value.fields({{"kind", Key::required},
                                            {"gpu"},
                                            {"form"},
                                            {"features"},
                                            {"extents"},
                                            {"caches"},
                                            {"tiles"},
                                            {"budget"},
                                            {"rates"},
                                            {"device"},
                                            {"date"},
                                            {"measured"}});
    TileRow row;
    row.line = value.location().line;
    if (const YamlValue *gpu = fields.find("gpu")) row.gpu = gpu->flag();
    row.kind = fields.find("kind")->word(kinds(row.gpu));
    if (const YamlValue *features = fields.find("features"))
        for (const YamlValue &word : features->elements()) row.features.push_back(feature_of(word));
    if (const YamlValue *measured = fields.find("measured")) measured->text();
    if (const YamlValue *device = fields.find("device")) row.device = device->text();
    if (const YamlValue *date = fields.find("date")) row.date = date->text();
    const YamlValue *tiles = fields.find("tiles"), *budget = fields.find("budget"), *rates = fields.find("rates");
    if (tiles && budget) value.fail("'tiles' cannot be used with 'budget'");
    if (rates && (tiles || budget)) value.fail(std::string("'rates' cannot be used with '") + (tiles ? "tiles'" : "budget'"));
    if (!tiles && !budget && !rates) value.fail("an entry needs 'tiles', 'budget' or 'rates'");
    if (budget) row.budget = budget_of(*budget, row, fields);
    if (rates) row.rates = rates_of(*rates, row, fields);
    if (!tiles) return row;
    row.form = form_in(value, fields.find("form"), row);
    if (const YamlValue *extents = fields.find("extents")) row.extents = extents_in(*extents, row.kind);
    if (const YamlValue *caches = fields.find("caches")) row.caches = caches_in(*caches, row.gpu);
    row.tiles = numbers_of(*tiles, tile_names(row));
    return row;
}

/// True if the caches of this machine have the sizes, and the target is this machine. Caches of other machines are unknown.
bool fits_caches(const TileRow &row, const Halide::Target &target) {
    const auto is_cache = [](const auto &condition) {
        const auto found = machine_caches().find(condition.first);
        return found != machine_caches().end() && found->second >= condition.second.least && found->second <= condition.second.most;
    };
    return row.caches.empty() || (is_this_machine(target) && std::ranges::all_of(row.caches, is_cache));
}

bool fits(const TileRow &row, std::string_view kind, const Halide::Target &target) {
    const auto is_feature = [&](Halide::Target::Feature feature) { return target.has_feature(feature); };
    return row.kind == kind && row.gpu == target.has_gpu_feature() && std::ranges::all_of(row.features, is_feature);
}

bool fits(const TileRow &row, const LoweredKernel &kernel, const Halide::Target &target) {
    const auto is_extent = [&](const auto &condition) {
        const Extent &extent = extent_of(kernel, condition.first);
        const int64_t size = extent.is_static() ? extent.value() : any_extent;
        return size >= condition.second.least && size <= condition.second.most;
    };
    return row.tiles && fits(row, kernel.kind, target) && (row.form.empty() || row.form == form_of(kernel)) &&
           std::ranges::all_of(row.extents, is_extent) && fits_caches(row, target);
}

[[noreturn]] void fail_without_row(const std::string &what, const Halide::Target &target) {
    throw UserError({Location(), "tiles", "the table has no entry " + what + " on " + target_text(target), "",
                     "Complete the file that SCALIDE_TILES names"});
}

} // namespace

bool covers(const TileRow &row, const TileRow &other) {
    const auto is_feature = [&](Halide::Target::Feature f) { return std::ranges::find(other.features, f) != other.features.end(); };
    return row.kind == other.kind && row.gpu == other.gpu && row.form == other.form && row.tiles.has_value() == other.tiles.has_value() &&
           row.rates.has_value() == other.rates.has_value() && has_rates_of(row, other) && std::ranges::all_of(row.features, is_feature) &&
           contains(row.extents, other.extents) && contains(row.caches, other.caches);
}

std::vector<TileRow> parse_tiles(const std::string &text, const std::string &file) {
    std::vector<TileRow> rows;
    for (const YamlValue &node : read_rows(text, file)) {
        const TileRow row = row_of(node);
        for (const TileRow &before : rows)
            if (covers(before, row))
                node.called(row.kind).fail("this entry has no effect: line " + std::to_string(before.line) + " already matches its kernels",
                                           "", "Move it before that line");
        rows.push_back(row);
    }
    return rows;
}

const Tiles &choose_row(const std::vector<TileRow> &rows, const LoweredKernel &kernel, const Halide::Target &target) {
    for (const TileRow &row : rows) {
        if (fits(row, kernel, target)) return *row.tiles;
    }
    fail_without_row("for kernels of kind " + kernel.kind, target);
}

Tiles choose_budget(const std::vector<TileRow> &rows, std::string_view kind, const Halide::Target &target) {
    if (budget_names(kind, target.has_gpu_feature()).empty()) return {};
    for (const TileRow &row : rows) {
        if (row.budget && fits(row, kind, target)) return *row.budget;
    }
    fail_without_row("with the budget of kernels of kind " + std::string(kind), target);
}

std::optional<Rate> find_rate(const std::vector<TileRow> &rows, std::string_view kind, const std::string &name,
                              const Halide::Target &target) {
    for (const TileRow &row : rows) {
        if (row.rates && row.rates->contains(name) && fits(row, kind, target)) return Rate{row.rates->at(name), row.device, row.date};
    }
    return {};
}

Budgets choose_budgets(const std::vector<TileRow> &rows, const Halide::Target &target) {
    Budgets budgets;
    for (const BudgetWord &word : budget_words())
        if (word.gpu == target.has_gpu_feature()) budgets.*word.number = choose_budget(rows, word.kind, target).at(std::string(word.name));
    return budgets;
}

} // namespace scalide
