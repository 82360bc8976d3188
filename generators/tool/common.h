#pragma once
#include "rulebook/policy.h"
#include <CLI/CLI.hpp>

namespace scalide {

struct BuildOptions;

/// Finds the installed files. The first of these wins: `--home`, SCALIDE_HOME, the folder ../share/scalide next to the executable. An
/// executable of a user's generators then uses the installation that built it, and an executable in the build folder uses the source tree.
/// Throws UserError.
struct Home {
    std::filesystem::path rules, include, runtime_library, pages;
};
Home find_home(const std::string &given);

/// The options of all commands that take a program.
struct ProgramOptions {
    std::string program, numerics = "f32", home;
    std::vector<std::string> parameters; ///< name=value
    std::vector<std::string> rules;      ///< rule files and folders of the user

    /// Adds the options. Returns the option of the program, called `name`, so that a command can make it required.
    CLI::Option *add_to(CLI::App &command, const std::string &name = "PROGRAM");
    /// Adds them without the policy.
    CLI::Option *add_program_to(CLI::App &command, const std::string &name = "PROGRAM");
    void add_rules_to(CLI::App &command);
    /// Loads the built-in rules and the user's rules.
    Rulebook load_rulebook() const;
    /// Loads a `.scl` file or runs a registered generator.
    Program load_program(const Rulebook &rulebook) const;
    /// Returns the folder of the built-in policies.
    std::filesystem::path policy_folder() const;
    /// Loads a policy from a file, or a built-in policy by name. The path of a file is relative to `folder`.
    Policy load_numerics(const std::string &name, const std::filesystem::path &folder = {}) const;
    Policy load_numerics() const { return load_numerics(numerics); }
};

/// Adds `--home`.
void add_home(CLI::App &command, std::string &home);

/// Adds the options that choose the target of compilation.
void add_target(CLI::App &command, BuildOptions &build);

/// Adds the option that makes a matmul without a library an error. `check_limits` throws UserError if the target has no library.
void add_libraries(CLI::App &command, BuildOptions &build);

/// Adds the options that limit the number of parallel compilers and their time. `check_limits` throws UserError for negative numbers.
void add_limits(CLI::App &command, BuildOptions &build);
void check_limits(const BuildOptions &build);

/// Adds `--verify`, which is for developers of passes.
/// Adds --statistics.
void add_statistics(CLI::App &command, BuildOptions &build);
void add_verify(CLI::App &command, BuildOptions &build);

/// Each function adds one subcommand and has its own source file.
void add_build(CLI::App &app);
void add_run(CLI::App &app);
void add_check(CLI::App &app);
void add_rules(CLI::App &app);
void add_policies(CLI::App &app);
void add_inspect(CLI::App &app);
void add_explain(CLI::App &app);
void add_compare(CLI::App &app);
void add_cache(CLI::App &app);
void add_devices(CLI::App &app);
void add_generators(CLI::App &app);
void add_convert(CLI::App &app);
void add_calibrate(CLI::App &app);
void add_tune(CLI::App &app);
void add_report(CLI::App &app);
void add_view(CLI::App &app);

} // namespace scalide
