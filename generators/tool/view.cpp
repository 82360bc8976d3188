#include "emit/files.h"
#include "emit/library.h"
#include "ir/words.h"
#include "tool/common.h"
#include "tool/page.h"
#include "tool/view_passes.h"
#include <filesystem>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace scalide {

namespace {

struct ViewCommand {
    ProgramOptions program;
    BuildOptions build;               ///< provides the target, its compute capabilities and whether the program is traceable
    std::vector<std::string> sources; ///< files of the user whose text the page shows
    std::string output = "view.html";

    void run() const {
        const Rulebook rulebook = program.load_rulebook();
        const Program loaded = program.load_program(rulebook);
        const CompileOptions options{
            .policy = program.load_numerics(), .facts = target_facts(build), .checks_types = build.checks_types, .splits_constants = true};
        const std::vector<PassChange> passes = record_passes(loaded, rulebook, options);
        nlohmann::ordered_json data = to_json(passes);
        data["program"] = loaded.name;
        data["policy"] = std::filesystem::path(program.numerics).filename().string();
        data["target"] = build.target;
        data["sources"] = texts_of_sources();
        const Page page{"Passes of " + name_to_string(loaded.name), {"view.css"}, {"view.js"}};
        write_file(output, to_html(page, data, find_home(program.home).pages));
        size_t changed = 0;
        for (const nlohmann::ordered_json &pass : data["passes"]) changed += is_changed(pass["script"]);
        fmt::print("{}: {} passes, {} of them change the program\n", output, passes.size(), changed);
    }

private:
    static bool is_changed(const nlohmann::ordered_json &script) {
        return script.size() > 1 || (script.size() == 1 && script[0][0] != "=");
    }

    /// The text of the program, if it is a file, and of the files that the user named, by the name of the file.
    nlohmann::ordered_json texts_of_sources() const {
        nlohmann::ordered_json texts = nlohmann::ordered_json::object();
        std::vector<std::filesystem::path> files(sources.begin(), sources.end());
        if (program.program.ends_with(".scl")) files.insert(files.begin(), program.program);
        for (const std::filesystem::path &file : files) texts[file.filename().string()] = read_file(file);
        return texts;
    }
};

} // namespace

void add_view(CLI::App &app) {
    const auto command = std::make_shared<ViewCommand>();
    CLI::App *view = app.add_subcommand(
        "view", "Write an HTML page that shows the program before and after each compiler pass, with the changed lines marked.");
    command->program.add_to(*view)->required();
    add_target(*view, command->build);
    add_verify(*view, command->build);
    view->add_option("-o,--output", command->output, "The HTML file. It contains everything and loads nothing.")->capture_default_str();
    view->add_option("--source", command->sources,
                     "Source file whose text the page shows, such as model.py. Lines of the program link to it. A .scl program is always "
                     "shown. Repeatable.");
    view->callback([command] { command->run(); });
}

} // namespace scalide
