#include "tool/tuning.h"
#include "emit/kernel_target.h"
#include "ir/text.h"
#include "schedules/tables/machine_caches.h"
#include "schedules/tables/table_rows.h"
#include "schedules/tables/tile_words.h"
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace scalide {

namespace {

constexpr int64_t largest_number = 1 << 20;

/// Returns "{l1: [32, 32], l2: [1024, 1024]}". Empty if the caches are unknown, or if `host` means another CPU.
std::string cache_sizes() {
    std::vector<std::string> sizes;
    if (!is_this_machine(parse_target("host"))) return "";
    for (const auto &[level, size] : machine_caches()) sizes.push_back(fmt::format("{0}: [{1}, {1}]", level, size));
    return sizes.empty() ? "" : fmt::format("{{{}}}", fmt::join(sizes, ", "));
}

/// Returns the extents as they are written; the reader of tables checks them.
std::string extents_text(const YamlValue &extents) {
    std::vector<std::string> ranges;
    for (const auto &[name, range] : extents.entries()) ranges.push_back(fmt::format("{}: [{}]", name, fmt::join(range.numbers(), ", ")));
    return fmt::format("{{{}}}", fmt::join(ranges, ", "));
}

std::vector<std::string> kinds_of_cpus() {
    std::vector<std::string> kinds;
    for (const ScheduledKernels &kernels : scheduled_kernels())
        if (!kernels.gpu && !kernels.tiles.empty() && (kinds.empty() || kinds.back() != kernels.kind)) kinds.emplace_back(kernels.kind);
    return kinds;
}

/// Returns the kernels that an entry is for, or null.
const ScheduledKernels *find_kernels(const TuningEntry &entry) {
    const auto is_asked = [&](const ScheduledKernels &each) { return each.kind == entry.kind && !each.gpu && each.form == entry.form; };
    const auto found = std::ranges::find_if(scheduled_kernels(), is_asked);
    return found == scheduled_kernels().end() ? nullptr : &*found;
}

const ScheduledKernels &kernels_of(const TuningEntry &entry, const YamlValue &value) {
    if (const ScheduledKernels *kernels = find_kernels(entry)) return *kernels;
    std::vector<std::string> forms;
    for (const ScheduledKernels &kernels : scheduled_kernels())
        if (kernels.kind == entry.kind && !kernels.gpu) forms.emplace_back(kernels.form.empty() ? "no form" : kernels.form);
    value.fail("the form of kernels of kind " + entry.kind + " must be " + fmt::format("{}", fmt::join(forms, " or ")),
               entry.form.empty() ? "no form" : "'" + entry.form + "'");
}

std::vector<std::pair<std::string, std::vector<int>>> alternatives_of(const YamlValue &tiles, const ScheduledKernels &kernels) {
    std::vector<std::pair<std::string, std::vector<int>>> alternatives;
    for (const auto &[name, values] : tiles.entries()) {
        if (std::ranges::find(kernels.tiles, name) == kernels.tiles.end())
            values.fail("must be one of " + fmt::format("{}", fmt::join(kernels.tiles, ", ")), "'" + name + "'");
        std::vector<int> numbers;
        for (const YamlValue &value : values.elements())
            numbers.push_back(int(integer_in(value, may_be_zero(name) ? 0 : 1, largest_number)));
        alternatives.emplace_back(name, numbers);
    }
    return alternatives;
}

TuningEntry entry_of(const YamlValue &row, const std::string &file) {
    const std::string name = row.text_of("kind");
    const YamlValue value = name.empty() ? row : row.called(name);
    const YamlFields fields =
        value.fields({{"kind", Key::required}, {"form"}, {"extents"}, {"features"}, {"tiles", Key::required}, {"works", Key::required}});
    TuningEntry entry;
    entry.location = value.location();
    entry.kind = fields.find("kind")->word(kinds_of_cpus());
    if (const YamlValue *form = fields.find("form")) entry.form = form->text();
    if (const YamlValue *extents = fields.find("extents")) entry.extents = extents_text(*extents);
    if (const YamlValue *features = fields.find("features")) entry.features = features->texts();
    entry.tiles = alternatives_of(*fields.find("tiles"), kernels_of(entry, value));
    for (const auto &[work, text] : fields.find("works")->entries())
        entry.works.push_back({work, parse_program(text.text(), fmt::format("{}:{}, work '{}'", file, text.location().line, work))});
    if (entry.works.empty()) fields.find("works")->fail("must have at least one work");
    return entry;
}

} // namespace

std::string TuningEntry::name() const { return kind + (form.empty() ? "" : " " + form) + (extents.empty() ? "" : " " + extents); }

std::string TuningEntry::text(const Tiles &numbers) const {
    std::vector<std::string> words;
    for (const auto &[number, value] : numbers) words.push_back(fmt::format("{}: {}", number, value));
    std::string text = "- kind: " + kind + "\n";
    if (!form.empty()) text += "  form: " + form + "\n";
    text += fmt::format("  features: [{}]\n", fmt::join(cpu_features("host"), ", "));
    if (!extents.empty()) text += "  extents: " + extents + "\n";
    if (const std::string caches = cache_sizes(); !caches.empty()) text += "  caches: " + caches + "\n";
    return text + fmt::format("  tiles: {{{}}}\n", fmt::join(words, ", "));
}

TileRow TuningEntry::row() const {
    Tiles ones;
    for (const std::string_view name : find_kernels(*this)->tiles) ones.emplace(name, 1);
    return parse_tiles(text(ones), fmt::format("{}:{}, entry", location.file, location.line)).at(0);
}

std::vector<TuningEntry> read_tuning(const std::string &text, const std::string &file) {
    std::vector<TuningEntry> entries;
    for (const YamlValue &row : read_rows(text, file)) {
        entries.push_back(entry_of(row, file));
        entries.back().row(); // throws for extents that kernels of the kind do not have
    }
    return entries;
}

} // namespace scalide
