#include "tool/common.h"
#include "emit/device_code.h"
#include "emit/files.h"
#include "emit/library.h"
#include "frontend/generator.h"
#include "ir/text.h"
#include "rulebook/nearest.h"
#include "schedules/schedule.h"
#include "tool/own_rules.h"
#include <algorithm>
#include <fmt/core.h>
#include <fmt/ranges.h>

namespace scalide {

namespace fs = std::filesystem;

namespace {

Home home_at(const fs::path &named) {
    const fs::path share = (named / "").parent_path(), prefix = share.parent_path().parent_path(); // without a trailing `/`
    return {share / "rules", prefix / "include", prefix / SCALIDE_LIBRARY_FOLDER / "libscalide_runtime.a", share / "pages"};
}

/// Uses the entries of a file before all others. A file without entries is an error.
void use_file_of_tiles(const std::string &file) {
    const std::string text = read_text_file(file);
    parse_tiles(text, file);
    use_tiles(text, file);
}

[[noreturn]] void refuse_home(const std::string &got) {
    throw UserError(failed_action("find the rules of Scalide", got,
                                  "Set --home or the environment variable SCALIDE_HOME to PREFIX/share/scalide of an installation"));
}

bool is_below(const fs::path &path, const fs::path &folder) {
    return std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first == folder.end();
}

} // namespace

Home find_home(const std::string &given) {
    const char *variable = std::getenv("SCALIDE_HOME");
    const std::string named = !given.empty() || !variable ? given : variable;
    std::error_code error;
    const fs::path executable = fs::read_symlink("/proc/self/exe", error),
                   beside = executable.parent_path().parent_path() / "share/scalide";
    if (!named.empty()) {
        if (!fs::exists(fs::path(named) / "rules", error)) refuse_home("there is no folder " + (fs::path(named) / "rules").string());
        return home_at(named);
    }
    for (const fs::path &share : {beside, own_home()})
        if (!share.empty() && fs::exists(share / "rules", error)) return home_at(share);
    if (!own_home().empty())
        refuse_home("there is no folder " + (own_home() / "rules").string() + ", which this executable was built with");
    const fs::path source = SCALIDE_SOURCE_DIR;
    if (!is_below(executable, fs::weakly_canonical(SCALIDE_BINARY_DIR, error)) || !fs::exists(source / "rules", error))
        refuse_home("there is no folder " + (beside / "rules").string());
    return {source / "rules", source / "runtime" / "include", SCALIDE_RUNTIME_LIBRARY,
            fs::path(SCALIDE_BINARY_DIR) / "home/share/scalide/pages"};
}

void add_home(CLI::App &command, std::string &home) {
    command.add_option(
        "--home", home,
        "Installation data folder PREFIX/share/scalide. Default: $SCALIDE_HOME, else next to this executable, else the folder "
        "that this executable was built with.");
}

void ProgramOptions::add_rules_to(CLI::App &command) {
    command.add_option("--rules", rules, "Rule files or folders to load in addition to the built-in rules. Repeatable.");
    add_home(command, home);
}

CLI::Option *ProgramOptions::add_to(CLI::App &command, const std::string &name) {
    CLI::Option *option = add_program_to(command, name);
    command.add_option("-n,--numerics", numerics, "Precision policy: a built-in name ('scalide policies' lists them) or a YAML file.")
        ->capture_default_str();
    return option;
}

CLI::Option *ProgramOptions::add_program_to(CLI::App &command, const std::string &name) {
    CLI::Option *option = command.add_option(name, program, "A .scl file, or the name of a generator in this executable.");
    command.add_option("-p,--parameter", parameters, "Value of a generator's parameter, as NAME=VALUE. Repeatable.");
    add_rules_to(command);
    return option;
}

void add_target(CLI::App &command, BuildOptions &build) {
    command
        .add_option("-t,--target", build.target,
                    "Target: host, opencl, cuda, x86-64-v2, x86-64-v3, x86-64-v4, x86-64-v4+amx, or a Halide target such as "
                    "x86-64-linux-avx2-fma-f16c. "
                    "Several CPUs with commas make one library, and bind takes the last one whose instructions the CPU has.")
        ->capture_default_str();
    command
        .add_option_function<std::string>(
            "--tiles", use_file_of_tiles,
            "Table of tile numbers (.yaml) for kernels, such as 'scalide tune' writes it. Its entries are used before the built-in ones. "
            "Default: the file that SCALIDE_TUNED_TILES names.")
        ->type_name("FILE");
    command
        .add_option("--cuda-arch", build.cuda_cards,
                    "With --target cuda: compute capabilities to compile for, such as 90 or 90,100. Default: " +
                        fmt::format("{}", fmt::join(cuda_cards, ",")) + ". Newer GPUs compile the included PTX.")
        ->delimiter(',')
        ->allow_extra_args(false);
    command.add_flag("--traceable", build.traceable,
                     "Store every rounded operand and every scale, so that scalide_run_traced can report them. Slower on CPUs.");
}

void add_libraries(CLI::App &command, BuildOptions &build) {
    command.add_flag("--require-libraries", build.require_libraries,
                     "With --target cuda: a matmul that cuBLASLt cannot compute is an error, when the program is built or bound.");
}

void add_limits(CLI::App &command, BuildOptions &build) {
    command.add_option("-j,--jobs", build.jobs, "Number of kernels to compile in parallel. Default: the number of CPU cores.");
    command
        .add_option("--time-limit", build.child_seconds,
                    "Stop the build if one kernel or one C compiler run takes longer than this many seconds. 0: no limit.")
        ->capture_default_str();
    build.retry = [](const std::string &failure) { fmt::print(stderr, "{}. Compiling it again, without other jobs\n", failure); };
}

void add_statistics(CLI::App &command, BuildOptions &build) {
    command
        .add_option_function<int64_t>(
            "--statistics", [&build](int64_t every) { build.statistics = {statistics_of_all(every)}; },
            "Collect statistics of all stored and rounded tensors in runs 0, N, 2 * N, ... Default of N: 10. Rows 'statistics' of the "
            "policy "
            "come first. The library then has two forms of the program.")
        ->expected(0, 1)
        ->default_str("10")
        ->check(CLI::PositiveNumber)
        ->type_name("N");
}

void add_verify(CLI::App &command, BuildOptions &build) {
    command.add_flag("--verify", build.checks_types, "Type-check the program after each pass (for developers of passes).")
        ->envname("SCALIDE_VERIFY");
}

void check_limits(const BuildOptions &build) {
    if (build.require_libraries && target_facts(build).products.empty())
        throw UserError(relation_of({}, "--require-libraries", "needs", "--target cuda"));
    if (build.jobs < 0)
        throw UserError({{}, "--jobs", "must not be negative", std::to_string(build.jobs), "Leave it out to use all CPU cores"});
    if (build.child_seconds < 0)
        throw UserError({{}, "--time-limit", "must not be negative", std::to_string(build.child_seconds), "0 means no limit"});
}

Rulebook ProgramOptions::load_rulebook() const {
    std::vector<fs::path> paths{find_home(home).rules};
    paths.insert(paths.end(), rules.begin(), rules.end());
    return Rulebook::load(paths, own_rules());
}

Program ProgramOptions::load_program(const Rulebook &rulebook) const {
    if (fs::path(program).extension() == ".scl") {
        if (parameters.empty()) return parse_program(read_file(program), program);
        throw UserError(statement({}, "--parameter needs a generator, but '" + program + "' is a program file", "Leave out --parameter"));
    }
    Parameters named;
    for (const std::string &parameter : parameters) {
        const size_t sign = parameter.find('=');
        if (sign == std::string::npos) throw UserError({{}, "--parameter", "must be NAME=VALUE", "'" + parameter + "'", ""});
        named[parameter.substr(0, sign)] = parameter.substr(sign + 1);
    }
    return run_generator(program, named, rulebook);
}

fs::path ProgramOptions::policy_folder() const { return find_home(home).rules / "policies"; }

Policy ProgramOptions::load_numerics(const std::string &name, const fs::path &folder) const {
    const fs::path ours = policy_folder(), built_in = ours / (name + ".yaml"), file = folder / name;
    if (fs::is_regular_file(file)) return load_policy(file, ours);
    if (fs::is_regular_file(built_in)) return load_policy(built_in, ours);
    const std::vector<std::string> names = policy_names(ours);
    const fs::path own(name);
    if (own.has_parent_path() || own.extension() == ".yaml" || own.extension() == ".yml")
        throw UserError(failed_action(
            "read the policy file " + file.string(), "no such file",
            (folder.empty() ? "A path is relative to the current folder. " : "A path is relative to the file that names it. ") +
                std::string("Built-in policies have no ending: ") + joined(names)));
    throw UserError(unknown_name({}, "policy", name, suggestion(name, names, "Use a YAML file or one of: " + joined(names))));
}

} // namespace scalide
