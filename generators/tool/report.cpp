#include "emit/files.h"
#include "tool/common.h"
#include "tool/compiled_program.h"
#include "tool/page.h"
#include "tool/report_graph.h"
#include "tool/report_program.h"
#include "tool/report_run.h"
#include "tool/run_findings.h"
#include "tool/tables.h"
#include "transforms/analysis/passes.h"
#include <fmt/core.h>
#include <map>
#include <nlohmann/json.hpp>

namespace scalide {

namespace {

using ReportJson = nlohmann::ordered_json;

/// Findings about a program alone: what its policy does in all runs.
void add_unsafe_sites(const std::string &policy, const ReportJson &sites, std::vector<Finding> &findings) {
    size_t count = 0;
    std::string first;
    for (const ReportJson &site : sites) {
        if (!site["unsafe"].get<bool>()) continue;
        if (count++ == 0)
            first = site["tensor"].get<std::string>() + " to " + site["format"].get<std::string>() + " (" +
                    site["policy"].get<std::string>() + ")";
    }
    if (count == 0) return;
    findings.push_back(
        {Severity::warn, "unsafe",
         fmt::format("The policy {} converts {} arrays to f16 or 8 bits without a scale. The first is {}.", policy, count, first),
         "Small values become zero there, and large values saturate or overflow. Add 'scale: {by: max}' to the rule, or train with a "
         "loss scaler."});
}

/// A library that Python built cites lines of the program. If the program names other lines for its
/// tensors, the report cites them.
void cite_program(RunLog &log, const Program &program) {
    std::map<std::string, const Location *> places;
    for (const Node &node : program.nodes)
        for (const ValueId result : node.results) places.emplace(program.value_name(result), &node.location);
    for (LoggedTensor &tensor : log.tensors) {
        const auto place = places.find(tensor.tensor);
        if (place != places.end() && tensor.source.starts_with(program.name + ".scl:")) tensor.source = short_place(*place->second, "-");
    }
}

struct ReportCommand {
    ProgramOptions program;
    BuildOptions build;
    std::vector<std::string> policies, runs, against;
    std::string output, inputs, cache;
    int profiled_runs = 0;

    void run() {
        check_limits(build);
        const Rulebook rulebook = program.load_rulebook();
        const Program loaded = program.load_program(rulebook);
        std::vector<Finding> findings;
        ReportJson data = {{"program", loaded.name}};
        describe_log(loaded, data, findings);
        data["policies"] = ReportJson::array();
        for (const std::string &name : policies)
            data["policies"].push_back(describe(loaded, rulebook, program.load_numerics(name), findings));
        data["graph"] = describe_graph(run_passes(loaded, rulebook, {.checks_types = build.checks_types}, Stage::calls).forms.main.program);
        finish(data, findings, loaded.name);
    }

private:
    void describe_log(const Program &loaded, ReportJson &data, std::vector<Finding> &findings) {
        if (!against.empty() && runs.empty())
            throw UserError(relation_of({}, "--against", "needs a run to compare", against[0], "Name the folder or the files of the run"));
        if (!runs.empty()) {
            RunWatch watch;
            RunLog log = read_run({runs.begin(), runs.end()}, &watch);
            cite_program(log, loaded);
            std::optional<RunLog> other;
            if (!against.empty()) other = read_run({against.begin(), against.end()});
            findings = explain_run(log, watch.tracks(), other ? &*other : nullptr);
            check_origin(log, loaded, findings);
            data["run"] = describe_run(log);
            if (other) data["against"] = describe_metrics(*other);
        }
        if (policies.empty()) policies.push_back("f32");
    }

    /// The policy of a run is the policy of its page, unless the command line names one.
    void check_origin(const RunLog &log, const Program &loaded, std::vector<Finding> &findings) {
        if (!log.program.empty() && log.program != loaded.name)
            findings.push_back({Severity::warn, "other program",
                                fmt::format("The run is from the program '{}', but this is the program '{}'.", log.program, loaded.name),
                                "Name the program of the run."});
        if (!policies.empty() || log.numerics.empty()) return;
        try {
            program.load_numerics(log.numerics);
            policies.push_back(log.numerics);
        } catch (const UserError &error) {
            findings.push_back(
                {Severity::note, "missing",
                 fmt::format("The policy '{}' of the run is not built in, so formats and kernels are shown for f32.", log.numerics),
                 "Name the file of the policy with --numerics."});
        }
    }

    ReportJson describe(const Program &loaded, const Rulebook &rulebook, const Policy &policy, std::vector<Finding> &findings) {
        std::vector<StepCost> costs;
        if (profiled_runs > 0) {
            build.policy = policy;
            build.cache_folder = cache;
            const ArrayFile arrays(inputs);
            const CompiledProgram compiled(loaded, rulebook, build, program.home);
            costs = compiled.library.profile([&](const std::string &name) { return compiled.find(name, arrays); }, profiled_runs);
        }
        const CompileOptions options{.policy = policy,
                                     .facts = target_facts(build),
                                     .checks_types = build.checks_types,
                                     .takes_notes = true,
                                     .splits_constants = true};
        ReportJson described = describe_policy(loaded, rulebook, options, costs);
        add_unsafe_sites(policy.name, described["sites"], findings);
        return described;
    }

    void finish(ReportJson &data, std::vector<Finding> &findings, const std::string &name) const {
        if (findings.empty())
            findings.push_back({Severity::note, "no run", "No run was given, so this page shows the program alone.",
                                "Train with statistics, and pass the folder of the run to this command."});
        sort_findings(findings);
        data["findings"] = ReportJson::array();
        for (const Finding &finding : findings) {
            const char *severity = finding.kind == "normal" ? "good" : severity_names[static_cast<size_t>(finding.severity)];
            data["findings"].push_back({{"severity", severity},
                                        {"kind", finding.kind},
                                        {"text", finding.text},
                                        {"todo", finding.todo},
                                        {"tensor", finding.tensor},
                                        {"step", finding.step}});
            fmt::print("{}: {}{}{}\n", severity, finding.text, finding.todo.empty() ? "" : " ", finding.todo);
        }
        const std::string file = output.empty() ? name + ".html" : output;
        const Page page{"Report of " + name,
                        {"report.css"},
                        {"plotly.min.js", "report_data.js", "report_plots.js", "report_heat_map.js", "report_program.js", "report.js"}};
        write_file(file, to_html(page, data, find_home(program.home).pages));
        fmt::print("{}\n", file);
    }
};

} // namespace

void add_report(CLI::App &app) {
    const auto command = std::make_shared<ReportCommand>();
    CLI::App *report = app.add_subcommand(
        "report", "Write one HTML page about a program and a run: what is unusual, tensors by steps, loss, kernels, memory, graph.");
    command->program.add_to(*report)->required();
    report->remove_option(report->get_option("--numerics"));
    report
        ->add_option(
            "-n,--numerics", command->policies,
            "Precision policy: a built-in name or a YAML file. Given twice, the page compares two policies. Default: the policy of "
            "the run, else f32.")
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    report->add_option("RUN", command->runs, "Folder of a run, or its .jsonl files: metrics and statistics. Default: no run.");
    report
        ->add_option("--against", command->against,
                     "Folder or file of another run. The page shows the difference of the metrics. Repeatable.")
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    report->add_option("-o,--output", command->output, "File of the page. Default: the name of the program, with the ending .html.");
    CLI::Option *inputs = report->add_option("-i,--inputs", command->inputs, "Safetensors file with the arguments, for --profile.");
    report
        ->add_option("--profile", command->profiled_runs, "Compile and run the program this many times, and show the time of each kernel.")
        ->check(CLI::Range(1, 1000000))
        ->needs(inputs);
    add_target(*report, command->build);
    add_limits(*report, command->build);
    add_verify(*report, command->build);
    report->add_option("--cache", command->cache, "Folder for compiled kernels. Default: $XDG_CACHE_HOME/scalide, else ~/.cache/scalide.");
    report->callback([command] { command->run(); });
}

} // namespace scalide
