#include "ir/words.h"
#include "tool/common.h"
#include "tool/compiled_program.h"
#include "tool/first_non_finite.h"
#include "tool/rounding_check.h"
#include "tool/table_filter.h"
#include "tool/tables.h"
#include "tool/written_tensors.h"
#include "transforms/analysis/passes.h"
#include "transforms/calls/calls.h"
#include <algorithm>
#include <fmt/core.h>

namespace scalide {

namespace {

constexpr size_t most_shown = 8;

/// Prints `h f32[2, 3]: 1 2 3 4 5 6`. Of a longer array, prints the first elements.
void print_array(const HostArray &array) {
    const std::vector<double> elements = to_tensor(array).data;
    std::string line;
    for (size_t i = 0; i < std::min(elements.size(), most_shown); i++) line += fmt::format(" {:.7g}", elements[i]);
    Extents shape(array.shape.begin(), array.shape.end());
    fmt::print("{} {}:{}{}\n", name_to_string(array.name), to_string(Type{array.dtype, shape}), line,
               elements.size() > most_shown ? " ..." : "");
}

bool derives_programs(const Program &program) {
    const auto derives = [](const Node &node) {
        const auto in_region = [](const Region &region) { return derives_programs(*region); };
        return (node.op != "call" && find_call_kind(node.op) != nullptr) || std::ranges::any_of(node.regions, in_region);
    };
    return std::ranges::any_of(program.nodes, derives) || std::ranges::any_of(program.programs, derives_programs);
}

/// Returns true if the interpreter runs a program with loops or branches as it is written. The passes would unroll them.
bool has_loops_alone(const Program &program) {
    return std::ranges::any_of(program.nodes, [](const Node &node) { return !node.regions.empty(); }) && !derives_programs(program);
}

/// Returns a table of the steps, and their sum. A step of a variant of the program, which the plan does not have, has no tensors.
std::string profile_table(const std::vector<StepCost> &steps, const Plan &plan) {
    double seconds = 0;
    uint64_t bytes = 0;
    for (const StepCost &step : steps) {
        seconds += step.seconds;
        bytes += step.bytes;
    }
    std::vector<std::vector<std::string>> rows = {
        {"step", "kernel", "us", "share", "bytes", "GB/s", "computes", "direction", "scope", "source"}};
    const auto add = [&](const std::string &step, const StepCost &cost, const WrittenTensors &written) {
        const double share = seconds > 0 ? 100 * cost.seconds / seconds : 0,
                     speed = cost.seconds > 0 ? 1e-9 * double(cost.bytes) / cost.seconds : 0;
        rows.push_back({step, cost.kernel, fmt::format("{:.1f}", 1e6 * cost.seconds), fmt::format("{:.1f} %", share),
                        fmt::format("{}", cost.bytes), fmt::format("{:.1f}", speed), written.tensors, written.direction, written.scope,
                        written.source});
    };
    for (size_t i = 0; i < steps.size(); i++) {
        const bool is_planned = i < plan.steps.size() && plan.steps[i].kernel == steps[i].kernel;
        add(fmt::format("{}", i), steps[i], in_columns(is_planned ? plan.steps[i].writes : std::vector<Origin>()));
    }
    add("all", {"", seconds, bytes}, in_columns(std::vector<Origin>()));
    drop_unused_columns(rows);
    return in_columns(rows);
}

constexpr const char *shown_only = "true"; // what CLI11 stores for a flag without a value

struct RunCommand {
    ProgramOptions program;
    BuildOptions build;
    TableFilter filter;
    std::string inputs, outputs, mode, cache;
    std::string statistics;           ///< a folder; `shown_only`: no folder; empty: the option is not given
    int profiled_runs = 0, ranks = 0; // 0: not given
    bool mpi = false;
    bool trace = false, check_finite = false, check = false, json = false;

    void run() {
        check_limits(build);
        if (json && !check && statistics.empty() && !(check_finite && !mode.empty()))
            throw UserError(statement({}, "--json needs --check, --statistics, or --check-finite with --interpret"));
        if (filter.is_given() && !check && statistics.empty())
            throw UserError(statement({}, "--tensor and --scope need --check or --statistics"));
        const Rulebook rulebook = program.load_rulebook();
        const Program loaded = program.load_program(rulebook);
        const bool is_compiled = mode.empty() && !check;
        if (mpi || ranks > 0) return run_ranks(loaded, rulebook);
        const ArrayFile arrays(inputs);
        std::vector<HostArray> results = is_compiled ? run_compiled(loaded, rulebook, arrays) : run_interpreted(loaded, rulebook, arrays);
        write_arrays(outputs, results);
        if (!json) fmt::print("{}: {} arrays\n", outputs, results.size());
    }

    // Each rank reads and writes files of its own, or those of all ranks if the name has no {rank}; then rank 0 writes.
    void run_ranks(const Program &loaded, const Rulebook &rulebook) {
        if (std::ranges::find(loaded.symbols, SymbolSource::ranks, &Symbol::source) == loaded.symbols.end())
            throw UserError({Location(), mpi ? "--mpi" : "--ranks", "needs a program with a group of ranks", loaded.name,
                             "Declare a group, as in: program " + loaded.name + " [data ranks] (...)"});
        build.policy = program.load_numerics();
        build.cache_folder = cache;
        const auto run_rank = [&](const CompiledProgram &compiled, const LoadedProgram &library) {
            const int rank = library.rank();
            const ArrayFile arrays(file_of_rank(inputs, rank));
            std::vector<HostArray> results = library.run([&](const std::string &name) { return compiled.find(name, arrays); });
            const std::string file = file_of_rank(outputs, rank);
            if (file == outputs && rank > 0) return;
            write_arrays(file, results);
            fmt::print("{}: {} arrays\n", file, results.size());
        };
        if (mpi) {
            const CompiledProgram compiled(loaded, rulebook, build, program.home, join_mpi);
            return run_rank(compiled, compiled.library);
        }
        RankThreads threads(ranks);
        const CompiledProgram compiled(loaded, rulebook, build, program.home);
        run_in_threads(ranks, [&](int rank) { run_rank(compiled, compiled.load(threads.join(rank))); });
    }

    // Runs the program as the user wrote it (mode real), or after the passes that decide what is stored (mode stored). A check uses the
    // program before kernels are formed, because kernels keep no names and lines and may recompute a rounded value. The results are the
    // same.
    std::vector<HostArray> run_interpreted(const Program &loaded, const Rulebook &rulebook, const ArrayFile &arrays) {
        const Mode how = mode == "real" ? Mode::real : Mode::stored;
        const Policy policy = how == Mode::real ? Policy() : program.load_numerics();
        const Stage last = how == Mode::real ? Stage::calls : check || check_finite ? Stage::stores : Stage::kernels;
        const CompileOptions options{.policy = policy, .facts = target_facts(build), .checks_types = build.checks_types};
        const bool is_as_written = how == Mode::real && has_loops_alone(loaded);
        const Program program_to_run =
            is_as_written ? infer_types(loaded, rulebook) : run_passes(loaded, rulebook, options, last).forms.main.program;
        std::vector<Array> inputs_in_order;
        for (const Argument &argument : program_to_run.arguments) {
            inputs_in_order.push_back(argument_tensor(arrays, program_to_run, argument, how));
        }
        std::optional<NonFiniteElement> finding;
        const std::vector<Array> outputs_in_order =
            check          ? run_checked(program_to_run, inputs_in_order, rulebook)
            : check_finite ? interpret_until_non_finite(program_to_run, inputs_in_order, rulebook, how, finding)
                           : interpret(program_to_run, inputs_in_order, rulebook, how);
        if (check_finite) fmt::print("{}", json ? to_json(finding) : to_text(finding, program_to_run) + "\n");
        std::vector<HostArray> results;
        for (size_t i = 0; i < outputs_in_order.size(); i++) {
            const Result &result = program_to_run.results[i];
            if (result.part.is_scale()) { // the scale of the data before it
                results.back().scaled = true;
                results.back().scale = static_cast<float>(outputs_in_order[i].data.at(0));
            } else {
                results.push_back(to_array(result.part.array(result.name), outputs_in_order[i]));
            }
        }
        return results;
    }

    std::vector<Array> run_checked(const Program &program_to_run, const std::vector<Array> &inputs_in_order,
                                   const Rulebook &rulebook) const {
        fmt::print(stderr, "interpreting {} operators, element by element: this is slow for large arrays\n", program_to_run.nodes.size());
        RoundingCheck found;
        std::vector<Array> outputs_in_order = interpret_and_check(program_to_run, inputs_in_order, rulebook, found);
        filter.apply(found.roundings, found.states, found.misfits);
        fmt::print("{}", json ? to_json(found) : to_text(found));
        return outputs_in_order;
    }

    // Returns an array of the file, or the part of it that the argument is. In mode real, an array stands for its values, data * scale, in
    // any dtype.
    Array argument_tensor(const ArrayFile &arrays, const Program &program_to_run, const Argument &argument, Mode how) const {
        const std::string &name = program_to_run.value_name(argument.value);
        if (argument.initial) return to_tensor(arrays.find_state(name, program_to_run.type(argument.value), *argument.initial));
        const HostArray array = arrays.find(argument.part.array(name));
        const bool in_parts = argument.part != ArrayPart();
        if (how == Mode::stored && in_parts != array.scaled) {
            throw UserError(
                {{inputs},
                 array.name,
                 in_parts ? "must be a scaled array (" + array.name + ".data and " + array.name + ".scale)" : "must be a plain array",
                 in_parts ? "a plain array" : "a scaled array",
                 ""});
        }
        if (argument.part.is_scale()) return {Dtype::f32, {}, {array.scale}};
        Array tensor = to_tensor(array);
        if (how == Mode::stored) return tensor;
        for (double &element : tensor.data) element *= array.scale;
        const Dtype declared = program_to_run.type(argument.value).dtype;
        if (is_float(tensor.dtype) && is_float(declared)) tensor.dtype = declared;
        return tensor;
    }

    std::vector<HostArray> run_compiled(const Program &loaded, const Rulebook &rulebook, const ArrayFile &arrays) {
        build.policy = program.load_numerics();
        build.cache_folder = cache;
        build.traceable |= trace;
        if (!statistics.empty()) build.statistics = {statistics_of_all(1)};
        const CompiledProgram compiled(loaded, rulebook, build, program.home);
        const LoadedProgram &library = compiled.library;
        const auto find = [&](const std::string &name) { return compiled.find(name, arrays); };
        if (profiled_runs > 0) fmt::print("{}", profile_table(library.profile(find, profiled_runs), compiled.plan()));
        if (!statistics.empty()) return run_collecting(library, find);
        if (!check_finite) return library.run(find, trace ? print_array : Show());
        NonFinite non_finite;
        std::vector<HostArray> results = library.run(find, {}, &non_finite);
        fmt::print("{}\n", to_text(non_finite, compiled.plan(), find));
        return results;
    }

    std::vector<HostArray> run_collecting(const LoadedProgram &library, const std::function<HostArray(const std::string &)> &find) const {
        std::vector<TensorStatistic> rows;
        std::vector<HostArray> results = library.run_collecting(find, rows, statistics == shown_only ? "" : statistics);
        filter.apply(rows);
        fmt::print("{}", json ? to_json(rows) : to_text(rows));
        return results;
    }
};

void add_checks(CLI::App &run, RunCommand &command) {
    run.add_flag("--statistics", command.statistics,
                 "Print the statistics of all stored and rounded tensors: amax, scale, rms, and what rounding lost. With "
                 "'--statistics=FOLDER', also write them there for 'scalide report'.")
        ->excludes("--interpret")
        ->excludes("--trace")
        ->excludes("--check-finite");
    const auto check = run.add_flag(
        "--check", command.check,
        "Interpret the program ('stored') and count rounding effects. For each tensor rounded to 8 or 16 bits: elements rounded to "
        "zero, saturated and subnormal elements. For each state: elements that the update did not change.");
    check->excludes("--interpret")->excludes("--trace")->excludes("--check-finite")->excludes("--profile")->excludes("--statistics");
}

void add_ranks(CLI::App &run, RunCommand &command) {
    const auto ranks =
        run.add_option("--ranks", command.ranks,
                       "Run this many ranks as threads of this process. All groups of the program have these ranks. In the names "
                       "of files, {rank} is the number of a rank; without it, all ranks read one file, and rank 0 writes.")
            ->check(CLI::Range(1, 1024));
    const auto mpi = run.add_flag("--mpi", command.mpi, "The ranks are the processes that mpirun started. File names as for --ranks.");
    for (CLI::Option *each : {ranks, mpi})
        each->excludes("--interpret")
            ->excludes("--trace")
            ->excludes("--check-finite")
            ->excludes("--profile")
            ->excludes("--check")
            ->excludes("--statistics");
    mpi->excludes(ranks);
}

} // namespace

void add_run(CLI::App &app) {
    const auto command = std::make_shared<RunCommand>();
    CLI::App *run = app.add_subcommand("run", "Run a program on arrays from a file.");
    command->program.add_to(*run)->required();
    run->add_option("-i,--inputs", command->inputs,
                    "Safetensors file with the arguments. A scaled array 'x' has two tensors, x.data and x.scale.")
        ->required();
    run->add_option("-o,--outputs", command->outputs, "Safetensors file for the results and the updated arguments.")->required();
    run->add_option("--interpret", command->mode,
                    "Run the float64 interpreter instead of compiled kernels. 'real': nothing is rounded to storage formats. "
                    "'stored': with the rounding that compiled kernels must reproduce.")
        ->check(CLI::IsMember({"real", "stored"}));
    run->add_flag("--trace", command->trace,
                  "Print every intermediate array when it is computed. Use debug_print in the program to label arrays.")
        ->excludes("--interpret");
    run->add_flag("--check-finite", command->check_finite,
                  "Report which result was the first with an infinity or a NaN, and in which step. With '--interpret': which operator, "
                  "and which element.")
        ->excludes("--trace");
    run->add_option("--profile", command->profiled_runs,
                    "Run this many times first, and print for each step the fastest time, and the bytes that it reads or writes.")
        ->check(CLI::Range(1, 1000000))
        ->excludes("--interpret")
        ->excludes("--trace");
    add_checks(*run, *command);
    add_ranks(*run, *command);
    command->filter.add_to(*run);
    run->add_flag("--json", command->json,
                  "Print the counts of --check, the rows of --statistics, or what --check-finite finds with --interpret, as JSON.");
    add_target(*run, command->build);
    add_libraries(*run, command->build);
    add_limits(*run, command->build);
    run->add_option("--cache", command->cache, "Folder for compiled kernels. Default: $XDG_CACHE_HOME/scalide, else ~/.cache/scalide.");
    run->callback([command] { command->run(); });
}

} // namespace scalide
