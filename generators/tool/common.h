#pragma once
#include "rulebook/policy.h"
#include <CLI/CLI.hpp>

namespace scalide {

struct BuildOptions;

/// Where the installed files are: `--home`, SCALIDE_HOME, beside the executable (../share/scalide), of an executable of a user's generators
/// the installation that it was built with, and of what lies in our build folder the tree. Throws UserError.
struct Home {
    std::filesystem::path rules, include, runtime_library;
};
Home find_home(const std::string &given);

/// The options of every command that takes a program.
struct ProgramOptions {
    std::string program, numerics = "f32", home;
    std::vector<std::string> parameters; ///< name=value
    std::vector<std::string> rules;      ///< files and folders beside ours

    /// Returns the option of the program, for commands that cannot do without.
    CLI::Option *add_to(CLI::App &command);
    void add_rules_to(CLI::App &command);
    /// Our rules and the user's.
    Rulebook load_rulebook() const;
    /// A `.scl` file, or a registered generator.
    Program load_program(const Rulebook &rulebook) const;
    /// Where our policies are.
    std::filesystem::path policy_folder() const;
    /// A file, or a policy of ours by name.
    Policy load_numerics() const;
};

/// `--home`.
void add_home(CLI::App &command, std::string &home);

/// The options that choose the target of compilation.
void add_target(CLI::App &command, BuildOptions &build);

/// The options that limit the number of parallel compilers and their time. Negative numbers are a UserError of `check_limits`.
void add_limits(CLI::App &command, BuildOptions &build);
void check_limits(const BuildOptions &build);

/// `--verify`, for developers of passes.
void add_verify(CLI::App &command, BuildOptions &build);

/// Each adds its subcommand; one file each.
void add_build(CLI::App &app);
void add_run(CLI::App &app);
void add_check(CLI::App &app);
void add_rules(CLI::App &app);
void add_policies(CLI::App &app);
void add_inspect(CLI::App &app);
void add_explain(CLI::App &app);
void add_cache(CLI::App &app);
void add_devices(CLI::App &app);

} // namespace scalide
