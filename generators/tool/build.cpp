#include "emit/library.h"
#include "ir/text.h"
#include "tool/build_report.h"
#include "tool/common.h"
#include "tool/operator_programs.h"
#include <fmt/core.h>
#include <unistd.h>

namespace scalide {

namespace {

struct BuildCommand {
    ProgramOptions program;
    BuildOptions build;
    std::string output = ".", cache;
    std::vector<std::string> dumps, operators, dtypes{"f32"};
    bool verbose = false, full_report = false;

    void check_dumps() const {
        for (const std::string &pass : dumps) {
            const std::vector<std::string> &names = pass_names();
            if (std::find(names.begin(), names.end(), pass) == names.end()) {
                std::string known;
                for (const std::string &name : names) known += (known.empty() ? "" : ", ") + name;
                throw UserError({{}, "dump-after", "must be a pass: " + known, "'" + pass + "'", ""});
            }
        }
    }

    void dump(const std::string &pass, const Program &after) const {
        if (std::find(dumps.begin(), dumps.end(), pass) != dumps.end()) fmt::print("# after {}\n{}", pass, to_string(after));
    }

    // One line that is overwritten on a terminal; with -v a line a kernel.
    void show(size_t done, size_t total, const std::string &kernel, bool cached) const {
        if (verbose) {
            fmt::print(stderr, "[{}/{}] {} {}\n", done, total, cached ? "cached  " : "compiled", kernel);
        } else if (isatty(STDERR_FILENO)) {
            fmt::print(stderr, "\r[{}/{}] kernels{}", done, total, done == total ? "\r\033[K" : "");
        }
    }

    std::vector<LibraryProgram> programs(const Rulebook &rulebook) {
        if (program.program.empty() == operators.empty()) {
            throw UserError({{}, "build", "must have a PROGRAM or --operators", operators.empty() ? "neither" : "both", ""});
        }
        if (operators.empty()) return {{program.load_program(rulebook), ""}};
        if (build.name.empty()) build.name = "operators";
        for (PolicyRule &row : build.policy.rules) row.optional = true; // each program is one operator
        build.is_collection = true;
        OperatorSelection selection{operators, {}, build.name};
        for (const std::string &name : dtypes) selection.dtypes.push_back(dtype_of(name));
        return operator_programs(rulebook, selection);
    }

    static Dtype dtype_of(const std::string &name) {
        const std::optional<Dtype> dtype = parse_dtype(name);
        if (dtype && is_float(*dtype) && *dtype != Dtype::f64) return *dtype;
        throw UserError({{}, "build.dtypes", "must be floating point formats such as f32, f16, bf16, f8_e4m3fn", "'" + name + "'", ""});
    }

    void run() {
        check_dumps();
        check_limits(build);
        const Rulebook rulebook = program.load_rulebook();
        build.policy = program.load_numerics();
        build.output_folder = output;
        build.cache_folder = cache;
        const Home home = find_home(program.home);
        build.include_folder = home.include;
        build.runtime_library = home.runtime_library;
        build.after_pass = [this](const std::string &pass, const Program &after) { dump(pass, after); };
        build.progress = [this](size_t done, size_t total, const std::string &kernel, bool cached) { show(done, total, kernel, cached); };
        std::string text;
        build.before_publish = [&](const BuildReport &report) { text = describe(report); };
        build_library(programs(rulebook), rulebook, build);
        std::fwrite(text.data(), 1, text.size(), stdout);
    }

    std::string describe(const BuildReport &report) const {
        return fmt::format("{}: {} kernels in {} steps, {} compiled, {} from the cache, {:.2f} s\n", report.files.back().string(),
                           report.kernels, report.steps, report.compiled, report.kernels - report.compiled, report.seconds) +
               (full_report ? table_of : exceptions_of)(report, target_facts(build)) + numerics_line(report) + "\n";
    }
};

} // namespace

void add_build(CLI::App &app) {
    const auto command = std::make_shared<BuildCommand>();
    CLI::App *build = app.add_subcommand("build", "compile a program into a static library, a C header, its plan and a manifest");
    command->program.add_to(*build);
    CLI::Option *operators =
        build->add_option("--operators", command->operators, "in place of PROGRAM: a library of these operators (LAX names, or all)")
            ->delimiter(',')
            ->excludes("--parameter");
    build->add_option("--dtypes", command->dtypes, "with --operators: the formats of their operands")
        ->delimiter(',')
        ->capture_default_str()
        ->needs(operators);
    build->add_option("-o,--output", command->output, "folder for the files")->capture_default_str();
    build->add_option("--name", command->build.name,
                      "name of the library and its C function (default: the program's); with --operators its C functions are "
                      "<name>_<operator>_<dtype>_program "
                      "(default: operators)");
    add_target(*build, command->build);
    add_limits(*build, command->build);
    add_verify(*build, command->build);
    build->add_option("--cache", command->cache, "folder of compiled kernels (default: $XDG_CACHE_HOME/scalide or ~/.cache/scalide)");
    build->add_flag("--shared", command->build.shared_library, "a shared library too");
    build->add_option("--dump-after", command->dumps, "print the program after this pass (may be given several times)");
    build->add_flag(
        "--report", command->full_report,
        "print a table of the kernels: steps, on CUDA registers, spills and shared memory by card, and the library of each product");
    build->add_flag("-v,--verbose", command->verbose, "a line for each kernel");
    build->callback([command] { command->run(); });
}

} // namespace scalide
