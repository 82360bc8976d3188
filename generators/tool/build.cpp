#include "emit/kernel_target.h"
#include "emit/library.h"
#include "ir/text.h"
#include "lower/shapes/kernel_passes.h"
#include "rulebook/nearest.h"
#include "tool/build_report.h"
#include "tool/common.h"
#include "tool/dump.h"
#include "tool/kernel_programs.h"
#include "tool/kernel_words.h"
#include "tool/speed_report.h"
#include "tool/tables.h"
#include "tool/written_tensors.h"
#include <algorithm>
#include <fmt/core.h>
#include <unistd.h>

namespace scalide {

namespace {

struct BuildCommand {
    ProgramOptions program;
    BuildOptions build;
    std::string output = ".", cache;
    std::vector<std::string> dumps, operators, dtypes;
    bool verbose = false, full_report = false;

    void check_dumps() const {
        std::vector<std::string> names = pass_names();
        names.insert(names.end(), kernel_pass_names().begin(), kernel_pass_names().end());
        for (const std::string &pass : dumps)
            if (std::ranges::find(names, pass) == names.end()) throw UserError(unknown_name({}, "pass", pass, suggestion(pass, names)));
    }

    void dump(const std::string &pass, const Program &after) const {
        if (std::ranges::find(dumps, pass) == dumps.end()) return;
        fmt::print("# after {}\n{}", pass, to_string(as_dumped(pass, after)));
    }

    // Overwrites one line on a terminal. With -v, prints one line per kernel.
    void show(size_t done, size_t total, const ReadyKernel &kernel) const {
        if (verbose) {
            fmt::print(stderr, "[{}/{}] {} {}: {} step{}, first {}\n", done, total, kernel.is_cached ? "cached  " : "compiled", kernel.name,
                       kernel.steps, kernel.steps == 1 ? "" : "s", in_words({kernel.first}, kernel.first.direction != Direction::forward));
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
        make_optional(build.policy);
        build.is_collection = true;
        std::vector<LibraryProgram> programs;
        std::map<std::string, Location> names;
        for (const LibraryKernel &kernel : kernels(rulebook)) {
            for (LibraryProgram &program : kernel_programs(rulebook, kernel, build.name)) {
                const auto [first, is_new] = names.emplace(program.program.name, kernel.location);
                if (!is_new)
                    throw UserError(statement(kernel.location, "two kernels have the name '" + kernel.name + "'", "Rename one of them"));
                programs.push_back(std::move(program));
            }
        }
        return programs;
    }

    /// A kernel has few operators, so many rules of a policy match nothing.
    static void make_optional(Policy &policy) {
        for (PolicyRule &row : policy.rules) row.optional = true;
    }

    std::vector<LibraryKernel> kernels(const Rulebook &rulebook) const {
        const auto loader = [this](const std::filesystem::path &folder) {
            return [this, folder](const std::string &name) {
                Policy policy = program.load_numerics(name, folder);
                make_optional(policy);
                return policy;
            };
        };
        std::vector<Dtype> formats;
        for (const std::string &name : dtypes) formats.push_back(dtype_of(name));
        if (formats.empty()) formats.push_back(Dtype::f32);
        std::vector<LibraryKernel> kernels;
        bool has_names = false;
        for (const std::string &option : operators) {
            for (const std::string &word : operator_words(option)) {
                if (word.ends_with(".yaml")) {
                    const std::filesystem::path folder = std::filesystem::path(word).parent_path();
                    std::ranges::move(read_kernels(read_text_file(word), word, rulebook, loader(folder)), std::back_inserter(kernels));
                } else if (word.find_first_of(":(=[") != std::string::npos) {
                    kernels.push_back(read_short_kernel(word, rulebook, loader({})));
                } else {
                    has_names = true;
                    std::ranges::move(default_kernels(rulebook, word, formats), std::back_inserter(kernels));
                }
            }
        }
        if (!has_names && !dtypes.empty()) throw UserError(statement({}, "--dtypes needs the name of an operator in --operators"));
        return kernels;
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
        build.progress = [this](size_t done, size_t total, const ReadyKernel &kernel) { show(done, total, kernel); };
        std::string text;
        build.before_publish = [&](const BuildReport &report) {
            check_libraries(report, target_facts(build));
            text = describe(report);
        };
        build_library(programs(rulebook), rulebook, build);
        std::fwrite(text.data(), 1, text.size(), stdout);
    }

    std::string machine_line() const {
        return fmt::format("for {}{}\n", build.target == "host" ? "this machine: " : "", described_targets(build.target));
    }

    std::string describe(const BuildReport &report) const {
        return fmt::format("{}: {} kernels in {} steps, {} compiled, {} from the cache, {:.2f} s\n", report.files.back().string(),
                           report.kernels, report.steps, report.compiled, report.kernels - report.compiled, report.seconds) +
               statistics_line(report) + (full_report ? table_of : exceptions_of)(report, target_facts(build)) +
               (full_report ? speeds_of(report) : "") + slow_formats(report, build) + machine_line() + numerics_line(report) + "\n";
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
                         "Build a kernel library instead of a program. Comma-separated: a kernel list (.yaml), a kernel such as "
                         "'softmax(axes=[1]):f32[b,n]', the name of an operator, or 'all'. Repeatable.")
            ->allow_extra_args(false)
            ->excludes("--parameter");
    build
        ->add_option("--dtypes", command->dtypes,
                     "Operand dtypes for names of operators in --operators, such as f16,f8_e4m3fn. Default: f32.")
        ->delimiter(',')
        ->needs(operators);
    build->add_option("-o,--output", command->output, "Output folder.")->capture_default_str();
    build->add_option("--name", command->build.name,
                      "Name of the library and prefix of its C functions. Default: the name of the program. With --operators: functions "
                      "<name>_<kernel>_program, default name 'operators'.");
    add_target(*build, command->build);
    add_libraries(*build, command->build);
    add_statistics(*build, command->build);
    add_limits(*build, command->build);
    add_verify(*build, command->build);
    build->add_option("--cache", command->cache, "Folder for compiled kernels. Default: $XDG_CACHE_HOME/scalide, else ~/.cache/scalide.");
    build->add_flag("--shared", command->build.shared_library, "Build a shared library (.so), too.");
    build->add_option("--dump-after", command->dumps, "Print the program after this compiler pass. Repeatable.");
    build->add_flag(
        "--report", command->full_report,
        "Print one line per kernel (steps; for CUDA also registers, spilled bytes and shared memory per compute capability), and for each "
        "matmul whether cuBLASLt or a generated kernel computes it. For CPUs, print by which instructions matmuls are computed, and their "
        "speed relative to f32.");
    build->add_flag("-v,--verbose", command->verbose,
                    "Print one line per kernel, with its number of steps and the source line of the first.");
    build->callback([command] { command->run(); });
}

} // namespace scalide
