#include "emit/library.h"
#include "ir/text.h"
#include "rulebook/nearest.h"
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
                throw UserError(unknown_name({}, "pass", pass, suggestion(pass, names)));
            }
        }
    }

    void dump(const std::string &pass, const Program &after) const {
        if (std::find(dumps.begin(), dumps.end(), pass) != dumps.end()) fmt::print("# after {}\n{}", pass, to_string(after));
    }

    // Overwrites one line on a terminal. With -v, prints one line per kernel.
    void show(size_t done, size_t total, const std::string &kernel, bool cached) const {
        if (verbose) {
            fmt::print(stderr, "[{}/{}] {} {}\n", done, total, cached ? "cached  " : "compiled", kernel);
        } else if (isatty(STDERR_FILENO)) {
            fmt::print(stderr, "\r[{}/{}] kernels{}", done, total, done == total ? "\r\033[K" : "");
        }
    }

    std::vector<LibraryProgram> programs(const Rulebook &rulebook) {
        if (program.program.empty() == operators.empty()) {
            throw UserError(operators.empty() ? statement({}, "'scalide build' needs a PROGRAM or --operators")
                                              : relation_of({}, "PROGRAM", "cannot be used with", "--operators"));
        }
        if (operators.empty()) return {{program.load_program(rulebook), ""}};
        if (build.name.empty()) build.name = "operators";
        for (PolicyRule &row : build.policy.rules) row.optional = true; // each program has a single operator, so many rules match nothing
        build.is_collection = true;
        OperatorSelection selection{operators, {}, build.name};
        for (const std::string &name : dtypes) selection.dtypes.push_back(dtype_of(name));
        return operator_programs(rulebook, selection);
    }

    static Dtype dtype_of(const std::string &name) {
        const std::optional<Dtype> dtype = parse_dtype(name);
        if (dtype && is_float(*dtype) && *dtype != Dtype::f64) return *dtype;
        throw UserError({{}, "--dtypes", "must be floating-point dtypes such as f32, f16, bf16, f8_e4m3fn", "'" + name + "'", ""});
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
    CLI::App *build =
        app.add_subcommand("build", "Compile a program into a static library (.a), a C header, the plan (C source) and a manifest (JSON).");
    command->program.add_to(*build);
    CLI::Option *operators =
        build
            ->add_option("--operators", command->operators,
                         "Build a library with one function per operator instead of a program. Comma-separated LAX names, or 'all'.")
            ->delimiter(',')
            ->excludes("--parameter");
    build->add_option("--dtypes", command->dtypes, "Operand dtypes for --operators, such as f16,f8_e4m3fn.")
        ->delimiter(',')
        ->capture_default_str()
        ->needs(operators);
    build->add_option("-o,--output", command->output, "Output folder.")->capture_default_str();
    build->add_option("--name", command->build.name,
                      "Name of the library and prefix of its C functions. Default: the name of the program. With --operators: functions "
                      "<name>_<operator>_<dtype>_program, default name 'operators'.");
    add_target(*build, command->build);
    add_limits(*build, command->build);
    add_verify(*build, command->build);
    build->add_option("--cache", command->cache, "Folder for compiled kernels. Default: $XDG_CACHE_HOME/scalide, else ~/.cache/scalide.");
    build->add_flag("--shared", command->build.shared_library, "Build a shared library (.so), too.");
    build->add_option("--dump-after", command->dumps, "Print the program after this compiler pass. Repeatable.");
    build->add_flag(
        "--report", command->full_report,
        "Print one line per kernel (steps; for CUDA also registers, spilled bytes and shared memory per compute capability), and for each "
        "matmul whether cuBLASLt or a generated kernel computes it.");
    build->add_flag("-v,--verbose", command->verbose, "Print one line per compiled kernel.");
    build->callback([command] { command->run(); });
}

} // namespace scalide
