#include "tool/common.h"
#include "emit/files.h"
#include "emit/library.h"
#include "frontend/generator.h"
#include "ir/text.h"
#include "rulebook/nearest.h"
#include "tool/own_rules.h"
#include <algorithm>
#include <fmt/core.h>
#include <fmt/ranges.h>

namespace scalide {

namespace fs = std::filesystem;

namespace {

Home home_at(const fs::path &named) {
    const fs::path share = (named / "").parent_path(), prefix = share.parent_path().parent_path(); // without a last `/`
    return {share / "rules", prefix / "include", prefix / SCALIDE_LIBRARY_FOLDER / "libscalide_runtime.a"};
}

[[noreturn]] void refuse_home(const std::string &got) {
    throw UserError(
        {{}, "home", "must be the folder share/scalide of an installation", got, "Name it with --home or in the variable SCALIDE_HOME"});
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
        if (!fs::exists(fs::path(named) / "rules", error)) refuse_home(named);
        return home_at(named);
    }
    for (const fs::path &share : {beside, own_home()})
        if (!share.empty() && fs::exists(share / "rules", error)) return home_at(share);
    if (!own_home().empty()) refuse_home("no rules in " + own_home().string() + ", which this executable was built with");
    const fs::path source = SCALIDE_SOURCE_DIR;
    if (!is_below(executable, fs::weakly_canonical(SCALIDE_BINARY_DIR, error)) || !fs::exists(source / "rules", error))
        refuse_home("no rules in " + beside.string());
    return {source / "rules", source / "runtime" / "include", SCALIDE_RUNTIME_LIBRARY};
}

void ProgramOptions::add_rules_to(CLI::App &command) {
    command.add_option("--rules", rules, "rule files or folders to load beside ours (may be given several times)");
    command.add_option("--home", home,
                       "folder share/scalide of an installation (default: beside this executable, or the one that it was built with)");
}

CLI::Option *ProgramOptions::add_to(CLI::App &command) {
    CLI::Option *option = command.add_option("PROGRAM", program, "a .scl file, or a generator registered in this executable");
    command.add_option("-n,--numerics", numerics, "a policy: a YAML file or one of ours by name")->capture_default_str();
    command.add_option("-p,--parameter", parameters, "a generator's parameter, as name=value (may be given several times)");
    add_rules_to(command);
    return option;
}

void add_target(CLI::App &command, BuildOptions &build) {
    command.add_option("-t,--target", build.target, "host, opencl, cuda, or a target of Halide such as x86-64-linux-avx2-fma-f16c")
        ->capture_default_str();
    command
        .add_option("--cuda-arch", build.cuda_cards,
                    "with target cuda: the cards to compile for, such as 90 or 90,100 (default: all that are known); others take PTX")
        ->delimiter(',')
        ->allow_extra_args(false);
    command.add_flag("--traceable", build.traceable,
                     "store each rounded operand and each scale, so that a trace (scalide_run_traced) shows it: slower on CPUs");
}

void add_limits(CLI::App &command, BuildOptions &build) {
    command.add_option("-j,--jobs", build.jobs, "kernels compiled at a time (default: one a core)");
    command
        .add_option("--time-limit", build.child_seconds,
                    "seconds for each kernel, and for each run of the C compiler: what has not ended then is ended; 0: no limit")
        ->capture_default_str();
    build.retry = [](const std::string &failure) { fmt::print(stderr, "{}; it is compiled once more, alone\n", failure); };
}

void add_verify(CLI::App &command, BuildOptions &build) {
    command.add_flag("--verify", build.checks_types, "hold every node to its rule after each pass: for who changes passes")
        ->envname("SCALIDE_VERIFY");
}

void check_limits(const BuildOptions &build) {
    if (build.jobs < 0)
        throw UserError({{}, "build.jobs", "must not be negative", std::to_string(build.jobs), "Leave it out for one a core"});
    if (build.child_seconds < 0)
        throw UserError({{}, "build.time-limit", "must not be negative", std::to_string(build.child_seconds), "0 is no limit"});
}

Rulebook ProgramOptions::load_rulebook() const {
    std::vector<fs::path> paths{find_home(home).rules};
    paths.insert(paths.end(), rules.begin(), rules.end());
    return Rulebook::load(paths, own_rules());
}

Program ProgramOptions::load_program(const Rulebook &rulebook) const {
    if (fs::path(program).extension() == ".scl") {
        if (parameters.empty()) return parse_program(read_file(program), program);
        throw UserError(
            {{program}, "parameter", "must be given to a generator", "'" + parameters[0] + "' for a .scl file", "Leave it out"});
    }
    Parameters named;
    for (const std::string &parameter : parameters) {
        const size_t sign = parameter.find('=');
        if (sign == std::string::npos) throw UserError({{}, "parameter", "must be name=value", "'" + parameter + "'", ""});
        named[parameter.substr(0, sign)] = parameter.substr(sign + 1);
    }
    return run_generator(program, named, rulebook);
}

fs::path ProgramOptions::policy_folder() const { return find_home(home).rules / "policies"; }

Policy ProgramOptions::load_numerics() const {
    const fs::path folder = policy_folder(), file = folder / (numerics + ".yaml");
    if (fs::is_regular_file(numerics)) return load_policy(numerics, folder);
    if (fs::is_regular_file(file)) return load_policy(file, folder);
    const std::vector<std::string> names = policy_names(folder);
    throw UserError({{},
                     "numerics",
                     "must be a policy file or one of: " + fmt::format("{}", fmt::join(names, ", ")),
                     "'" + numerics + "'",
                     nearest(numerics, names).empty() ? "" : suggestion(numerics, names)});
}

} // namespace scalide
