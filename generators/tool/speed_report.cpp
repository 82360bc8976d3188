#include "tool/speed_report.h"
#include "emit/product_speeds.h"
#include "tool/tables.h"
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace scalide {

namespace {

const char *noun_of(size_t matmuls, size_t convolutions) {
    if (convolutions == 0) return matmuls == 1 ? "matmul" : "matmuls";
    if (matmuls == 0) return convolutions == 1 ? "convolution" : "convolutions";
    return "matmuls and convolutions";
}

bool is_convolution(const ProductSpeed &speed) { return speed.kind == "window"; }

std::string times_of(const Rate &rate) { return fmt::format("{:.2f}", rate.percent / 100.0); }

/// Returns "2.00 times the speed of f32, EPYC Zen 4, 2026-11-29".
std::string words_of(const std::optional<Rate> &rate) {
    if (!rate) return "unknown speed";
    return fmt::format("{} times the speed of f32, {}, {}", times_of(*rate), rate->device, rate->date);
}

/// The speeds of all programs of a build on one of its CPUs.
std::vector<ProductSpeed> speeds_on(const BuildReport &report, size_t machine) {
    std::vector<ProductSpeed> all;
    for (const ProgramForms<BuiltForm> &machines : report.programs)
        std::ranges::move(product_speeds(machines[machine].main), std::back_inserter(all));
    return all;
}

struct Total {
    size_t count = 0;
    double operations = 0;
};

template<typename Is>
Total total_of(const std::vector<ProductSpeed> &speeds, const Is &is_counted) {
    Total total;
    for (const ProductSpeed &speed : speeds) {
        if (!is_counted(speed)) continue;
        total.count += speed.count;
        total.operations += speed.operations;
    }
    return total;
}

double share_of(double part, double all) { return all == 0 ? 0 : 100 * part / all; }

/// Returns "f16 (decoded to f32, FMA; 1.00 times the speed of f32, EPYC Zen 4, 2026-11-29)" for each slow form, without repetitions.
std::vector<std::string> slow_forms(const std::vector<ProductSpeed> &speeds, const Halide::Target &target) {
    std::vector<std::string> words;
    for (const ProductSpeed &speed : speeds) {
        if (!speed.is_no_gain()) continue;
        const std::string text = fmt::format("{}{} ({}; {})", speed.form.format, is_convolution(speed) ? " convolutions" : "",
                                             instructions_of(speed.form, target), words_of(speed.rate));
        if (std::ranges::find(words, text) == words.end()) words.push_back(text);
    }
    return words;
}

/// Returns what makes matmuls faster than in f32 on a CPU.
std::string suggestion_for(const std::vector<ProductSpeed> &speeds, const Halide::Target &target) {
    const auto is_matmul = [](const ProductSpeed &speed) { return speed.is_no_gain() && !is_convolution(speed); };
    if (std::ranges::none_of(speeds, is_matmul)) return "Convolutions are computed in f32 with every policy";
    std::vector<std::string> faster;
    for (const ProductSpeed &speed : format_speeds("contract", target))
        if (speed.form.sums_floats && speed.form.by != MultiplyBy::own && !speed.is_no_gain())
            faster.push_back(speed.form.format + (speed.rate ? " " + times_of(*speed.rate) : ""));
    if (!faster.empty()) return fmt::format("Faster there: matmuls in {}", fmt::join(faster, ", "));
    return "No format of 8 or 16 bits is faster there: use f32, or build for a CPU with AMX (--target x86-64-v4+amx)";
}

std::string slow_formats_on(const BuildReport &report, size_t machine, const std::string &name) {
    const std::vector<ProductSpeed> speeds = speeds_on(report, machine);
    const Halide::Target &target = report.programs[0][machine].main.target.halide;
    const Total all = total_of(speeds, [](const ProductSpeed &) { return true; }),
                slow = total_of(speeds, [](const ProductSpeed &speed) { return speed.is_no_gain(); });
    if (slow.count == 0) return "";
    const size_t convolutions = total_of(speeds, is_convolution).count;
    return fmt::format("{} is no faster than f32 on {} in {} of {} {} ({:.0f} % of FLOPs): {}. {}\n", report.main().plan.numerics,
                       name == "host" ? "this machine" : name, slow.count, all.count, noun_of(all.count - convolutions, convolutions),
                       share_of(slow.operations, all.operations), fmt::join(slow_forms(speeds, target), ", "),
                       suggestion_for(speeds, target));
}

} // namespace

std::string speeds_of(const BuildReport &report) {
    std::string text;
    for (size_t machine = 0; machine < report.programs[0].size(); machine++) {
        const MachineForms<BuiltForm> &forms = report.programs[0][machine];
        const std::vector<ProductSpeed> speeds = speeds_on(report, machine);
        const double all = total_of(speeds, [](const ProductSpeed &) { return true; }).operations;
        for (const ProductSpeed &speed : speeds) {
            const size_t convolutions = is_convolution(speed) ? speed.count : 0;
            const std::string rate = speed.form.by == MultiplyBy::own ? "" : "; " + words_of(speed.rate);
            text += fmt::format("{}{} {} ({:.0f} % of FLOPs) in {} ({}{})\n", forms.cpu.empty() ? "" : forms.cpu + ".", speed.count,
                                noun_of(speed.count - convolutions, convolutions), share_of(speed.operations, all), speed.form.format,
                                instructions_of(speed.form, forms.main.target.halide), rate);
        }
    }
    return text;
}

std::string slow_formats(const BuildReport &report, const BuildOptions &options) {
    if (options.policy.rules.empty() || report.products.narrow_products() <= report.products.own) return "";
    std::string text;
    const std::vector<std::string> names = split_targets(options.target);
    for (size_t machine = 0; machine < report.programs[0].size(); machine++) text += slow_formats_on(report, machine, names[machine]);
    return text;
}

std::string speed_table(const Halide::Target &target) {
    std::vector<std::vector<std::string>> rows = {{"matmuls in", "by", "times the speed of f32"}};
    for (const ProductSpeed &speed : format_speeds("contract", target)) {
        const std::string known =
            speed.rate ? fmt::format("{} ({}, {})", times_of(*speed.rate), speed.rate->device, speed.rate->date) : "unknown";
        rows.push_back({speed.form.format, instructions_of(speed.form, target), speed.form.by == MultiplyBy::own ? "1" : known});
    }
    return in_columns(rows);
}

} // namespace scalide
