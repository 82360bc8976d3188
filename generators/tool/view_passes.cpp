#include "tool/view_passes.h"
#include "ir/text.h"
#include "lower/shapes/kernel_passes.h"
#include "tool/dump.h"
#include <dtl/dtl.hpp>
#include <filesystem>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

namespace scalide {

namespace {

using PassJson = nlohmann::ordered_json;
using Lines = std::vector<PrintedLine>;

void append(Lines &lines, const Lines &others) {
    if (!lines.empty()) lines.push_back({});
    lines.insert(lines.end(), others.begin(), others.end());
}

/// The passes of kernels, in order: the texts of all kernels before and after each.
void record_kernel_passes(const Program &fused, std::vector<PassChange> &passes) {
    std::map<std::string, std::vector<Lines>> made; // by pass, one for each kernel; empty if the pass does not apply to its class
    std::vector<Lines> present;
    for (size_t i = 0; i < fused.programs.size(); i++) {
        present.push_back(to_lines(fused.programs[i]));
        shape_kernel(fused.programs[i], [&](const std::string &pass, const Program &kernel) {
            std::vector<Lines> &all = made[pass];
            all.resize(fused.programs.size());
            all[i] = to_lines(as_dumped(pass, kernel));
        });
    }
    for (const std::string &pass : kernel_pass_names()) {
        PassChange change{pass, true, {}, {}};
        for (const Lines &kernel : present) append(change.before, kernel);
        std::vector<Lines> &after = made[pass];
        after.resize(present.size());
        for (size_t i = 0; i < present.size(); i++)
            if (!after[i].empty()) present[i] = after[i];
        for (const Lines &kernel : present) append(change.after, kernel);
        passes.push_back(std::move(change));
    }
}

/// Gives equal lines the same number.
class LineNumbers {
public:
    int of(const PrintedLine &line) {
        const auto key = std::tuple(line.text, line.location.file, line.location.line, line.location.column);
        const auto [found, is_new] = numbers_.try_emplace(key, int(lines_.size()));
        if (is_new) lines_.push_back(to_json(line));
        return found->second;
    }
    std::vector<int> of(const Lines &lines) {
        std::vector<int> numbers;
        for (const PrintedLine &line : lines) numbers.push_back(of(line));
        return numbers;
    }
    PassJson lines() const { return lines_; }
    PassJson files() const { return files_; }

private:
    PassJson to_json(const PrintedLine &line) {
        if (line.location.line == 0) return PassJson::array({line.text});
        const std::string name = std::filesystem::path(line.location.file).filename().string(); // a folder may be private
        const auto [file, is_new] = file_numbers_.try_emplace(name, int(files_.size()));
        if (is_new) files_.push_back(name);
        return PassJson::array({line.text, file->second, line.location.line, line.location.column});
    }

    std::map<std::tuple<std::string, std::string, int, int>, int> numbers_;
    std::map<std::string, int> file_numbers_;
    PassJson lines_ = PassJson::array(), files_ = PassJson::array();
};

/// Compares the texts of lines only: a pass may keep a line and know its location better.
PassJson script_of(const Lines &before, const Lines &after) {
    const auto texts = [](const Lines &lines) {
        std::vector<std::string> all;
        for (const PrintedLine &line : lines) all.push_back(line.text);
        return all;
    };
    dtl::Diff<std::string, std::vector<std::string>> diff(texts(before), texts(after));
    diff.onHuge();
    diff.compose();
    PassJson script = PassJson::array();
    for (const auto &[text, info] : diff.getSes().getSequence()) {
        const char *op = info.type == dtl::SES_COMMON ? "=" : info.type == dtl::SES_DELETE ? "-" : "+";
        if (script.empty() || script.back()[0] != op) script.push_back({op, 0});
        script.back()[1] = script.back()[1].get<int>() + 1;
    }
    return script;
}

} // namespace

std::vector<PassChange> record_passes(const Program &program, const Rulebook &rulebook, CompileOptions options) {
    std::vector<PassChange> passes;
    Lines before = to_lines(program);
    options.after_pass = [&](const std::string &pass, const Program &after) {
        Lines lines = to_lines(as_dumped(pass, after));
        if (!passes.empty() && passes.back().pass == pass) { // a pass that makes two programs, such as split_constants
            append(passes.back().after, lines);
            return;
        }
        passes.push_back({pass, false, before, lines});
        before = std::move(lines);
    };
    record_kernel_passes(compile(program, rulebook, options), passes);
    return passes;
}

nlohmann::ordered_json to_json(const std::vector<PassChange> &passes) {
    LineNumbers numbers;
    PassJson list = PassJson::array();
    for (const PassChange &pass : passes)
        list.push_back({{"name", pass.pass},
                        {"of_kernels", pass.of_kernels},
                        {"before", numbers.of(pass.before)},
                        {"after", numbers.of(pass.after)},
                        {"script", script_of(pass.before, pass.after)}});
    return {{"lines", numbers.lines()}, {"files", numbers.files()}, {"passes", list}};
}

} // namespace scalide
