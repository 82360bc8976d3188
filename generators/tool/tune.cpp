#include "emit/files.h"
#include "emit/kernel_target.h"
#include "emit/library.h"
#include "ir/text.h"
#include "rulebook/nearest.h"
#include "rulebook/yaml_value.h"
#include "schedules/schedule.h"
#include "tool/common.h"
#include "tool/host_cpu.h"
#include "tool/loaded_program.h"
#include "tool/tuning.h"
#include "transforms/analysis/passes.h"
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace scalide {

namespace {

constexpr double least_gain = 0.05;      ///< entries with less gain keep the numbers, because times vary
constexpr double least_step_gain = 0.02; ///< of one number while others are tried
constexpr double sample_seconds = 0.02;  ///< of the runs of one work in one round

/// Tile numbers that are tried, and the milliseconds of each work with them, by round.
struct Candidate {
    Tiles tiles;
    std::vector<std::vector<double>> times = {};

    double best(size_t work) const { return *std::ranges::min_element(times[work]); }
};

std::string to_text(const Tiles &tiles) {
    std::vector<std::string> words;
    for (const auto &[name, value] : tiles) words.push_back(fmt::format("{}: {}", name, value));
    return fmt::format("{{{}}}", fmt::join(words, ", "));
}

double median(std::vector<double> values) {
    std::ranges::nth_element(values, values.begin() + std::ssize(values) / 2);
    return values[values.size() / 2];
}

/// Returns the time of a candidate relative to another one, as the geometric mean over all works. Of a work, the ratio of the best times
/// and the median of the ratios of each round must agree that a candidate is faster: the larger one counts. One of them alone may be luck.
double relative_time(const Candidate &candidate, const Candidate &other) {
    double logarithms = 0;
    for (size_t work = 0; work < candidate.times.size(); work++) {
        std::vector<double> ratios;
        for (size_t round = 0; round < candidate.times[work].size(); round++)
            ratios.push_back(candidate.times[work][round] / other.times[work][round]);
        logarithms += std::log(std::max(median(ratios), candidate.best(work) / other.best(work)));
    }
    return std::exp(logarithms / double(candidate.times.size()));
}

/// A work compiled with some tile numbers, and its arguments.
struct Compiled {
    LoadedProgram program;
    Tiles tiles; ///< of its kernel of the entry's kind
    const std::vector<HostArray> &arguments;

    double seconds(int runs) const {
        const auto find = [this](const std::string &name) { return *std::ranges::find(arguments, name, &HostArray::name); };
        double seconds = 0;
        for (const StepCost &step : program.profile(find, runs)) seconds += step.seconds;
        return seconds;
    }
};

/// Returns arguments of a program, with elements in [-1, 1].
std::vector<HostArray> arguments_of(const Plan &plan) {
    std::vector<HostArray> arguments;
    for (const PlanArgument &argument : plan.arguments) {
        const Type &type = plan.buffers[size_t(argument.data_buffer)].type;
        Array array{type.dtype, {}, {}};
        size_t count = 1;
        for (const Extent &extent : type.shape) {
            if (!extent.is_static())
                throw UserError({{}, argument.name, "must have static extents in a work of 'scalide tune'", to_string(type), ""});
            array.shape.push_back(extent.value());
            count *= size_t(extent.value());
        }
        for (size_t i = 0; i < count; i++) array.data.push_back(double(i * 2654435761U % 1024) / 512 - 1);
        arguments.push_back(to_array(argument.name, array));
    }
    return arguments;
}

/// Compiles and measures the works of one entry.
class Measurement {
public:
    Measurement(const TuningEntry &entry, const Rulebook &rulebook, BuildOptions build, std::filesystem::path folder, bool quick)
        : entry_(entry), rulebook_(rulebook), build_(std::move(build)), folder_(std::move(folder)), works_(quick ? 1 : entry.works.size()),
          rounds_(quick ? 3 : 9) {}

    size_t works() const { return works_; }

    /// Returns the numbers of the built-in table, which all works must have.
    Tiles built_in() {
        const Tiles tiles = compile(0, {}).tiles;
        for (size_t work = 1; work < works_; work++) {
            const Tiles others = compile(work, {}).tiles;
            if (others != tiles)
                throw UserError({entry_.location, entry_.works[work].name,
                                 "must have the tile numbers of the first work, " + to_text(tiles), to_text(others),
                                 "Put works with other numbers into an entry of their own"});
        }
        return tiles;
    }

    /// Measures the candidates in alternating rounds, each of which begins with another candidate.
    void measure(std::vector<Candidate> &candidates, int times = 1) {
        for (Candidate &candidate : candidates) candidate.times.assign(works_, {});
        for (size_t work = 0; work < works_; work++) {
            std::vector<const Compiled *> compiled;
            for (const Candidate &candidate : candidates) compiled.push_back(&compile(work, candidate.tiles));
            const int runs = int(std::clamp(sample_seconds / std::max(1e-7, compiled[0]->seconds(1)), 1.0, 2000.0));
            for (size_t round = 0; round < size_t(times * rounds_); round++) {
                for (size_t i = 0; i < candidates.size(); i++) {
                    const size_t turn = (round + i) % candidates.size();
                    candidates[turn].times[work].push_back(1e3 * compiled[turn]->seconds(runs));
                }
            }
        }
    }

private:
    /// Returns a work with these numbers, or with the built-in ones if there are none.
    const Compiled &compile(size_t work, const Tiles &tiles) {
        const auto [found, is_new] = compiled_.try_emplace({work, tiles});
        if (!is_new) return *found->second;
        use_tiles(tiles.empty() ? "" : entry_.text(tiles), "candidate");
        build_.output_folder = folder_ / std::to_string(count_++);
        const BuildReport report = build_library({{entry_.works[work].program, ""}}, rulebook_, build_);
        const BuiltForm &built = report.main();
        const auto [arguments, is_first] = arguments_.try_emplace(work);
        if (is_first) arguments->second = arguments_of(built.plan);
        found->second = std::make_unique<Compiled>(
            Compiled{{report.files.back(), built.plan.name}, tiles_in(built, entry_.works[work].name), arguments->second});
        if (!tiles.empty() && found->second->tiles != tiles)
            throw UserError({entry_.location, entry_.works[work].name, "must match the conditions of its entry", entry_.name(), ""});
        return *found->second;
    }

    Tiles tiles_in(const BuiltForm &built, const std::string &work) const {
        for (const auto &[name, kernel] : built.kernels)
            if (built.kernel(name).attributes.at("kind").word == entry_.kind) return kernel.tiles;
        throw UserError({entry_.location, work, "must have a kernel of kind " + entry_.kind,
                         fmt::format("{} other kernels", built.kernels.size()), ""});
    }

    const TuningEntry &entry_;
    const Rulebook &rulebook_;
    BuildOptions build_;
    std::filesystem::path folder_;
    size_t works_, count_ = 0;
    int rounds_;
    std::map<size_t, std::vector<HostArray>> arguments_; ///< by work
    std::map<std::pair<size_t, Tiles>, std::unique_ptr<Compiled>> compiled_;
};

std::string today() {
    const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
    std::array<char, 16> text = {};
    std::strftime(text.data(), text.size(), "%Y-%m-%d", std::gmtime(&now));
    return text.data();
}

/// The numbers that an entry gets, and a text about all measured times.
struct Tuned {
    Tiles tiles;
    std::string measured;
};

/// Returns the best times of each work, in the order of the candidates: "x * x of f32: 0.012 / 0.011 / 0.013. ".
std::string described_times(const TuningEntry &entry, const std::vector<Candidate> &candidates) {
    std::string text;
    for (size_t work = 0; work < candidates[0].times.size(); work++) {
        std::vector<std::string> times;
        for (const Candidate &candidate : candidates) times.push_back(fmt::format("{:.4g}", candidate.best(work)));
        text += fmt::format("\n    {}: {}.", entry.works[work].name, fmt::join(times, " / "));
    }
    return text;
}

/// Tries all alternatives of one number. Sets it in `tiles` if another value is better.
std::string try_number(const TuningEntry &entry, Measurement &measurement, const std::string &name, const std::vector<int> &values,
                       Tiles &tiles) {
    std::vector<Candidate> candidates = {{tiles}};
    for (const int value : values) {
        if (value == tiles.at(name)) continue;
        candidates.push_back({tiles});
        candidates.back().tiles[name] = value;
    }
    measurement.measure(candidates);
    std::vector<std::string> tried, relative;
    const Candidate *best = &candidates[0];
    for (const Candidate &candidate : candidates) {
        const double time = relative_time(candidate, candidates[0]);
        tried.push_back(fmt::format("{}", candidate.tiles.at(name)));
        relative.push_back(fmt::format("{} {:.2f}", tried.back(), time));
        if (time < relative_time(*best, candidates[0]) && time < 1 - least_step_gain) best = &candidate;
    }
    fmt::print("  {}, relative times: {}\n", name, fmt::join(relative, ", "));
    std::fflush(stdout);
    tiles = best->tiles;
    return fmt::format("\n    ms with {} {}.{}", name, fmt::join(tried, " / "), described_times(entry, candidates));
}

/// Tunes an entry. The result is measured against the built-in numbers again, because the best of several times is often only luck.
Tuned tune(const TuningEntry &entry, Measurement &measurement) {
    const Tiles before = measurement.built_in();
    Tuned tuned{before, ""};
    for (const auto &[name, values] : entry.tiles) tuned.measured += try_number(entry, measurement, name, values, tuned.tiles);
    if (tuned.tiles == before) {
        fmt::print("  keeps {}\n", to_text(before));
        return tuned;
    }
    std::vector<Candidate> both = {{before}, {tuned.tiles}};
    measurement.measure(both, 2);
    const double time = relative_time(both[1], both[0]);
    const bool is_better = time <= 1 - least_gain;
    fmt::print("  {} takes {:.2f} of the time of {}{}\n", to_text(both[1].tiles), time, to_text(before), is_better ? "" : ", which stays");
    tuned.measured += fmt::format("\n    ms with {} / {}.{}", to_text(before), to_text(both[1].tiles), described_times(entry, both));
    if (!is_better) tuned.tiles = before;
    return tuned;
}

struct TuneCommand {
    BuildOptions build;
    std::string home, output, works_file;
    std::vector<std::string> kinds;
    bool quick = false;

    void run() {
        check_limits(build);
        ProgramOptions options;
        options.home = home;
        const Rulebook rulebook = options.load_rulebook();
        const std::vector<TuningEntry> entries = chosen_entries(rulebook);
        build.policy = options.load_numerics();
        const Home found = find_home(home);
        build.include_folder = found.include;
        build.runtime_library = found.runtime_library;
        build.shared_library = true;
        for (size_t i = 0; i < entries.size(); i++) {
            const std::string why = why_not(entries[i]);
            fmt::print("{} ({} of {}){}{}\n", entries[i].name(), i + 1, entries.size(), why.empty() ? "" : ": ", why);
            std::fflush(stdout);
            if (why.empty()) add(entries[i], rulebook);
        }
        if (!written().empty()) fmt::print("{}: for 'scalide build --tiles {}' or SCALIDE_TUNED_TILES\n", output, output);
    }

    /// Returns the entries of the chosen kinds. Throws UserError for mistakes in any work, before the first one is measured.
    std::vector<TuningEntry> chosen_entries(const Rulebook &rulebook) const {
        std::vector<TuningEntry> entries =
            works_file.empty() ? read_tuning(tuning_text, "tuning.yaml") : read_tuning(read_text_file(works_file), works_file);
        std::vector<std::string> known;
        for (const TuningEntry &entry : entries)
            for (const TuningWork &work : entry.works) infer_types(work.program, rulebook);
        for (const TuningEntry &entry : entries)
            if (std::ranges::find(known, entry.kind) == known.end()) known.push_back(entry.kind);
        for (const std::string &kind : kinds)
            if (std::ranges::find(known, kind) == known.end())
                throw UserError(unknown_name({}, "kernel class", kind, suggestion(kind, known)));
        const auto is_other = [this](const TuningEntry &entry) {
            return !kinds.empty() && std::ranges::find(kinds, entry.kind) == kinds.end();
        };
        std::erase_if(entries, is_other);
        return entries;
    }

    std::string written() const { return std::filesystem::exists(output) ? read_text_file(output) : ""; }

    /// Returns why an entry is not measured; empty if it is.
    std::string why_not(const TuningEntry &entry) const {
        const std::vector<std::string> features = cpu_features("host");
        for (const std::string &feature : entry.features)
            if (std::ranges::find(features, feature) == features.end()) return "the target host has no " + feature;
        const std::string text = written();
        if (text.empty()) return "";
        for (const TileRow &before : parse_tiles(text, output))
            if (covers(before, entry.row())) return fmt::format("already in {}:{}", output, before.line);
        return "";
    }

    /// Measures an entry and adds it to the file, which always has whole entries.
    void add(const TuningEntry &entry, const Rulebook &rulebook) const {
        const WorkFolder folder(std::filesystem::temp_directory_path() / "scalide-tune");
        Measurement measurement(entry, rulebook, build, folder.path(), quick);
        const auto [tiles, measured] = tune(entry, measurement);
        std::string text = written();
        if (text.empty()) text = "# Tile numbers that 'scalide tune' measured. A further run adds the entries that are missing.\n";
        text += entry.text(tiles) +
                fmt::format("  device: {}\n  date: {}\n  measured: >{}\n", nlohmann::json(host_cpu().model).dump(), today(), measured);
        parse_tiles(text, output);
        write_file(output, text);
    }
};

} // namespace

void add_tune(CLI::App &app) {
    const auto command = std::make_shared<TuneCommand>();
    CLI::App *tune = app.add_subcommand("tune", "Measure the tile numbers of kernels on this machine, and write those that are best here.");
    tune->add_option(
        "KIND", command->kinds,
        "Measure only these kernel classes, such as contract (matmuls) and map (elementwise operators). Default: all that have works.");
    tune->add_option("-o,--output", command->output,
                     "Table of tile numbers (.yaml) for --tiles. Entries that it already has are not measured again, so a run that was "
                     "interrupted continues.")
        ->required();
    tune->add_flag("--quick", command->quick, "Measure only the first work of each entry, in fewer rounds.");
    tune->add_option("--works", command->works_file,
                     "Measure the works and alternatives of this table (.yaml) instead of the built-in ones.");
    add_home(*tune, command->home);
    add_limits(*tune, command->build);
    tune->add_option("--cache", command->build.cache_folder,
                     "Folder for compiled kernels. Default: $XDG_CACHE_HOME/scalide, else ~/.cache/scalide.");
    tune->callback([command] { command->run(); });
}

} // namespace scalide
