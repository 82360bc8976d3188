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
#include <algorithm>
#include <filesystem>
#include <fmt/core.h>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

namespace scalide {

namespace {

using ReportJson = nlohmann::ordered_json;

/// A finding, and the run that it is about; -1: the program.
struct PageFinding {
    Finding finding;
    int run;
};

/// The arguments of the command line, run by run: each folder is a run, and all files together are one.
std::vector<std::vector<std::filesystem::path>> by_run(const std::vector<std::string> &arguments) {
    std::vector<std::vector<std::filesystem::path>> groups;
    std::optional<size_t> files;
    for (const std::string &argument : arguments) {
        if (std::filesystem::is_directory(argument)) {
            groups.push_back({argument});
            continue;
        }
        if (!files) {
            files = groups.size();
            groups.emplace_back();
        }
        groups[*files].push_back(argument);
    }
    return groups;
}

/// Numbers runs of the same name, because a page shows no folders: "run", "run (2)".
void make_unique(std::string &name, const std::vector<std::string> &others) {
    const auto is_free = [&](const std::string &each) { return std::ranges::find(others, each) == others.end(); };
    const std::string base = name;
    for (int number = 2; !is_free(name); number++) name = fmt::format("{} ({})", base, number);
}

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

/// Adds the names of all arrays of a program, and of its loops and branches.
void add_names(const Program &program, std::set<std::string> &names) {
    for (const Value &value : program.values) names.insert(value.name);
    for (const Node &node : program.nodes)
        for (const Region &region : node.regions) add_names(*region, names);
}

/// A library may have another name than its program, so a run is from another program only if most of its tensors have other names, too.
void check_program(const RunLog &log, const Program &program, std::vector<Finding> &findings) {
    if (log.program.empty() || log.program == program.name) return;
    std::set<std::string> names;
    add_names(program, names);
    const auto known = std::ranges::count_if(log.tensors, [&](const LoggedTensor &each) { return names.contains(each.tensor); });
    if (2 * static_cast<size_t>(known) >= log.tensors.size()) return;
    findings.push_back({Severity::warn, "other program",
                        fmt::format("The run is from '{}'. Of its {} tensors, the program '{}' has {}.", log.program, log.tensors.size(),
                                    program.name, known),
                        "Name the program of the run."});
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
        std::vector<PageFinding> findings;
        ReportJson data = {{"program", loaded.name}};
        const Program inlined = run_passes(loaded, rulebook, {.checks_types = build.checks_types}, Stage::calls).forms.main.program;
        describe_runs(inlined, data, findings);
        data["policies"] = ReportJson::array();
        std::vector<Finding> unsafe;
        for (const std::string &name : policies)
            data["policies"].push_back(describe(loaded, rulebook, program.load_numerics(name), unsafe));
        for (Finding &finding : unsafe) findings.push_back({std::move(finding), -1});
        data["graph"] = describe_graph(inlined);
        finish(data, findings, loaded.name);
    }

private:
    void describe_runs(const Program &loaded, ReportJson &data, std::vector<PageFinding> &findings) {
        if (!against.empty() && runs.empty())
            throw UserError(relation_of({}, "--against", "needs a run to compare", against[0], "Name the folder or the files of the run"));
        std::optional<RunLog> other;
        if (!against.empty()) other = read_run({against.begin(), against.end()});
        data["runs"] = ReportJson::array();
        const bool takes_policies = policies.empty();
        const RunProgram facts(loaded);
        const std::vector<std::vector<std::filesystem::path>> groups = by_run(runs);
        std::vector<std::string> names;
        for (size_t k = 0; k < groups.size(); k++) {
            RunWatch watch;
            RunLog log = read_run(groups[k], &watch);
            make_unique(log.name, names);
            names.push_back(log.name);
            facts.cite_lines(log);
            std::vector<Finding> found = explain_run(log, watch, facts, other ? &*other : nullptr);
            check_program(log, loaded, found);
            if (takes_policies) add_policy(log, found);
            sort_findings(found);
            for (Finding &finding : found) {
                if (groups.size() > 1) finding.text = log.name + ": " + finding.text;
                findings.push_back({std::move(finding), static_cast<int>(k)});
            }
            data["runs"].push_back(describe_run(log));
        }
        if (other) data["against"] = describe_metrics(*other);
        if (policies.empty()) policies.push_back("f32");
    }

    /// The policies of the runs are the policies of the page, unless the command line names some.
    void add_policy(const RunLog &log, std::vector<Finding> &findings) {
        const bool is_known = std::ranges::find(policies, log.numerics) != policies.end();
        if (is_known || log.numerics.empty()) return;
        try {
            program.load_numerics(log.numerics);
            policies.push_back(log.numerics);
        } catch (const UserError &error) {
            findings.push_back(
                {Severity::note, "missing",
                 fmt::format("The policy '{}' of the run is not built in, so formats and kernels are not shown for it.", log.numerics),
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

    /// Findings have the order of their severity. In each severity, the runs have the order of the command line, before the program.
    void finish(ReportJson &data, std::vector<PageFinding> &findings, const std::string &name) const {
        if (findings.empty())
            findings.push_back({{Severity::note, "no run", "No run was given, so this page shows the program alone.",
                                 "Train with statistics, and pass the folder of the run to this command."},
                                -1});
        std::ranges::stable_sort(findings, {}, [](const PageFinding &each) { return each.finding.severity; });
        data["findings"] = ReportJson::array();
        for (const auto &[finding, index] : findings) {
            const char *severity = finding.kind == "normal" ? "good" : severity_names[static_cast<size_t>(finding.severity)];
            data["findings"].push_back({{"severity", severity},
                                        {"kind", finding.kind},
                                        {"text", finding.text},
                                        {"todo", finding.todo},
                                        {"run", index},
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
        ->add_option("-n,--numerics", command->policies,
                     "Precision policy: a built-in name or a YAML file. Given several times, the page compares two of them. Default: the "
                     "policies of the runs, else f32.")
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    report->add_option("RUN", command->runs,
                       "Folder of a run, or its .jsonl files: metrics and statistics. Several folders are several runs: the page shows the "
                       "difference of their metrics from the first one. Default: no run.");
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
