#include "tool/tool.h"
#include "emit/files.h"
#include "frontend/generator.h"
#include "rulebook/nearest.h"
#include "tool/common.h"
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <new>
#include <system_error>
#include <unistd.h>

namespace scalide {

namespace {

constexpr int user_mistake = 1, bad_command_line = 2, our_mistake = 70;
/// The status of a program that SIGPIPE ends: the program that read the output, such as `head`, has ended.
constexpr int reader_left = 128 + SIGPIPE;

/// Reports an unknown first word before CLI11 can report a missing command.
void check_command(const CLI::App &app, const std::string &word) {
    std::vector<std::string> names;
    for (const CLI::App *command : app.get_subcommands({})) names.push_back(command->get_name());
    if (word.starts_with("-") || std::ranges::find(names, word) != names.end()) return;
    throw UserError(unknown_name({}, "command", word, suggestion(word, names)));
}

/// Describes a command line that CLI11 does not accept. CLI11 names unknown options without a suggestion.
std::string complaint(const CLI::App &app, const CLI::ParseError &error) {
    const std::vector<CLI::App *> commands = app.get_subcommands();
    const CLI::App &command = commands.empty() ? app : *commands.front();
    const std::vector<std::string> rest = app.remaining(true);
    const auto option = std::ranges::find_if(rest, [](const std::string &word) { return word.starts_with("-"); });
    if (option == rest.end())
        return std::string(error.what()) + ". See '" + app.get_name() + (commands.empty() ? "" : " " + command.get_name()) + " --help'";
    std::vector<std::string> names;
    for (const CLI::Option *known : command.get_options())
        for (const std::string &name : known->get_lnames()) names.push_back("--" + name);
    return UserError(unknown_name({}, "option", *option, suggestion(*option, names))).what();
}

int report(const char *kind, const char *words, int status) {
    std::fprintf(stderr, "%s: %s\n", kind, words);
    return status;
}

constexpr const char *no_memory = "out of memory. Close other programs, or use fewer parallel jobs (-j 1)";

bool is_out_of_memory = false;

void note_lack_of_memory() {
    is_out_of_memory = true;
    throw std::bad_alloc();
}

/// Some libraries have functions that may not throw and yet allocate (CLI11, nlohmann_json).
[[noreturn]] void end_without_memory() {
    if (!is_out_of_memory) std::abort();
    remove_work_folder();
    report("error", no_memory, user_mistake);
    _exit(user_mistake);
}

int run_commands(int argc, char **argv) {
    CLI::App app("Compile array programs with scaled low-precision tensors into native kernel libraries.",
                 std::filesystem::path(argv[0]).filename().string());
    app.require_subcommand(1);
    app.set_version_flag("--version", SCALIDE_VERSION);
    app.footer("'scalide COMMAND --help' prints the options of a command.");
    for (const auto add : {add_build, add_run, add_check, add_rules, add_policies, add_inspect, add_explain, add_compare, add_cache,
                           add_devices, add_generators, add_convert, add_calibrate, add_tune, add_report, add_view})
        add(app);
    if (argc == 1) {
        std::fputs(app.help().c_str(), stderr);
        return bad_command_line;
    }
    try {
        check_command(app, argv[1]);
    } catch (const UserError &error) {
        return report("error", error.what(), bad_command_line);
    }
    try {
        app.parse(argc, argv);
        if (std::fflush(stdout) != 0) throw std::system_error(errno, std::generic_category(), "cannot write to file");
    } catch (const CLI::Success &request) {
        return app.exit(request);
    } catch (const CLI::ParseError &error) {
        return report("error", complaint(app, error).c_str(), bad_command_line);
    }
    return 0;
}

} // namespace

int tool_main(int argc, char **argv) {
    std::set_new_handler(note_lack_of_memory);
    std::set_terminate(end_without_memory);
    try {
        return run_commands(argc, argv);
    } catch (const UserError &error) {
        return report("error", error.what(), user_mistake);
    } catch (const std::system_error &error) { // a disk or memory limit, not a bug in Scalide
        if (error.code() == std::errc::broken_pipe && std::ferror(stdout)) return reader_left;
        return report("error", error.what(), user_mistake);
    } catch (const std::bad_alloc &) {
        return report("error", no_memory, user_mistake);
    } catch (const InternalError &error) { // its message already says that it is an internal error
        std::fprintf(stderr, "%s\n", error.what());
        return our_mistake;
    } catch (const std::exception &error) {
        return report("internal error", error.what(), our_mistake);
    }
}

} // namespace scalide
