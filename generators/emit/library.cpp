#include "emit/library.h"
#include "emit/library_files.h"
#include "emit/plan_text.h"
#include "ir/text.h"
#include "ir/words.h"
#include "lower/contract_form.h"
#include "lower/halide/amx_feature.h"
#include "lower/shapes/kernel_passes.h"
#include "lower/values/panels.h"
#include "schedules/dispatch.h"
#include "schedules/schedule.h"
#include <algorithm>
#include <chrono>

namespace scalide {

namespace {

constexpr const char *statistics_suffix = ".statistics";

TargetFacts facts_of(const std::string &name, const BuildOptions &options) {
    const Halide::Target target = parse_target(name);
    const Budgets budgets = choose_budgets(target);
    return {name,
            library_products(device_name(device_of(target))),
            cards_of(name, options.cuda_cards),
            !target.has_gpu_feature() && !options.traceable,
            {budgets.network, budgets.network_step, budgets.digits_line, budgets.digits_element, budgets.maximum_element},
            target.has_gpu_feature()};
}

const Policy &policy_of(const LibraryProgram &source, const BuildOptions &options) {
    return source.policy ? *source.policy : options.policy;
}

/// Returns the layout in which a kernel packs its right operand; nothing if it packs none, or reads it from panels already.
std::optional<PanelLayout> panels_of(const Program &kernel, const Halide::Target &target, const Budgets &budgets) {
    if (kernel.attributes.contains(panels_attribute)) return {};
    const std::string &kind = kernel.attributes.at("kind").word;
    if (kind == "contract") return contract_panels(kernel, target, budgets);
    if (kind == "window") return convolution_panels(kernel, target, budgets);
    return {};
}

/// Returns how constants are packed for a target. Kernels for GPUs read operands without packing. A traceable program keeps each operand.
ChoosePanels choose_panels(const TargetFacts &facts) {
    if (!facts.prepares_kernels) return {};
    const Halide::Target target = parse_target(facts.name);
    return [target, budgets = choose_budgets(target)](const Program &kernel) { return panels_of(kernel, target, budgets); };
}

/// Prints the program of each kernel after each pass of its shapes.
void dump_shapes(const Program &fused, const BuildOptions &options) {
    if (!options.after_pass) return;
    for (const Program &kernel : fused.programs) shape_kernel(kernel, options.after_pass);
}

void report_notes(BuildReport &report, const Program &program, Notes notes) {
    report.products.add(notes.formats);
    std::ranges::move(notes.copied, std::back_inserter(report.copied));
    for (const std::string &left : notes.left_to_kernels) report.left_to_kernels.push_back(name_to_string(program.name) + "." + left);
}

/// Returns the forms of a program for all targets. Passes and notes are reported for the first target only.
ProgramForms<Form> compile_forms(const LibraryProgram &source, const Rulebook &rulebook, const BuildOptions &options, BuildReport &report) {
    ProgramForms<Form> forms;
    for (const std::string &name : split_targets(options.target)) {
        const bool is_first = forms.empty();
        const TargetFacts facts = facts_of(name, options);
        const CompileOptions compilation{.policy = policy_of(source, options),
                                         .facts = facts,
                                         .after_pass = is_first ? options.after_pass : nullptr,
                                         .checks_types = options.checks_types,
                                         .unroll = options.unroll,
                                         .takes_notes = true,
                                         .splits_constants = true,
                                         .statistics = source.statistics,
                                         .choose_panels = choose_panels(facts)};
        Compiled compiled = run_passes(source.program, rulebook, compilation, Stage::forms);
        if (is_first && source.statistics.empty()) {
            dump_shapes(compiled.forms.main.program, options);
            report_notes(report, source.program, std::move(compiled.notes));
        } else if (is_first) {
            report.statistics.push_back(std::move(compiled.statistics));
        } else {
            compiled.forms.cpu = name;
        }
        forms.push_back(std::move(compiled.forms));
    }
    return forms;
}

/// Returns the forms with the targets of their kernels, under the name of the library if it is given to its only program.
ProgramForms<BuiltForm> with_targets(ProgramForms<Form> forms, const std::vector<KernelTarget> &targets, const std::string &name) {
    ProgramForms<BuiltForm> built;
    for (size_t i = 0; i < forms.size(); i++) {
        built.push_back(map_forms(std::move(forms[i]), [&](Form form) {
            if (!name.empty()) form.program.name = name;
            return BuiltForm{std::move(form), targets[i]};
        }));
    }
    return built;
}

/// Returns the text of the target that a machine must have for a program. A program without products for tiles is bound without asking the
/// system for them.
std::string plan_target(const BuiltForm &built) {
    const Halide::Target &target = built.target.halide;
    if (!target.has_feature(amx_feature)) return target_text(target);
    const Budgets budgets = choose_budgets(target);
    const bool uses_tiles = std::ranges::any_of(built.kernels, [&](const auto &entry) {
        const std::optional<ProductForm> form = product_form(built.kernel(entry.first), target, budgets);
        return form && form->by == MultiplyBy::tiles;
    });
    return target_text(uses_tiles ? target : target.without_feature(amx_feature));
}

Plan plan_of(const BuiltForm &built, const LibraryProgram &source, const BuildOptions &options) {
    CallOrders call_orders;
    std::string identity = to_string(built.form.program);
    for (const auto &[name, kernel] : built.kernels) {
        call_orders[name] = kernel.call_order;
        identity += kernel.key;
    }
    Plan plan = make_plan(built.form.program, call_orders);
    for (PlanBuffer &buffer : plan.buffers) {
        const auto origin = built.form.origins.find(buffer.name);
        if (origin != built.form.origins.end()) buffer.origin = origin->second;
    }
    for (PlanStep &step : plan.steps) {
        for (Origin &written : step.writes) {
            const auto origin = built.form.origins.find(written.tensor);
            if (origin != built.form.origins.end()) written = origin->second;
        }
    }
    plan.doc = source.doc;
    plan.requirements = built.form.requirements;
    plan.target = plan_target(built);
    plan.device = device_of(built.target.halide);
    plan.require_libraries = options.require_libraries || policy_of(source, options).require_libraries;
    plan.numerics = policy_of(source, options).name;
    plan.hash = hash_text(identity);
    return plan;
}

std::vector<PlanStatistic> plan_statistics(const std::vector<CollectedStatistic> &collected, const Plan &plan) {
    std::map<std::string, int> arguments;
    for (size_t i = 0; i < plan.arguments.size(); i++) arguments.emplace(plan.arguments[i].name, static_cast<int>(i));
    std::vector<PlanStatistic> rows;
    for (const CollectedStatistic &tensor : collected) {
        PlanStatistic row{tensor, {}};
        std::ranges::transform(tensor.results, row.arguments.begin(),
                               [&](const std::string &name) { return name.empty() ? -1 : arguments.at(name); });
        rows.push_back(std::move(row));
    }
    return rows;
}

/// Returns the programs and, after each program whose policy or build asks for statistics, its statistics program.
std::vector<LibraryProgram> with_statistics(const std::vector<LibraryProgram> &programs, const BuildOptions &options) {
    std::vector<LibraryProgram> all;
    for (const LibraryProgram &program : programs) {
        all.push_back(program);
        std::vector<StatisticsRow> rows = policy_of(program, options).statistics;
        rows.insert(rows.end(), options.statistics.begin(), options.statistics.end());
        if (rows.empty()) continue;
        all.push_back(program);
        all.back().statistics = std::move(rows);
    }
    return all;
}

/// Plans all forms of a program. The hash of the program depends on all of them.
void add_plans(ProgramForms<BuiltForm> &forms, const LibraryProgram &source, const BuildOptions &options) {
    std::string hash;
    for (MachineForms<BuiltForm> &machine : forms) {
        each_form(machine, [&](BuiltForm &built) {
            built.plan = plan_of(built, source, options);
            hash = hash.empty() ? built.plan.hash : hash_text(hash + built.plan.hash);
        });
    }
    forms[0].main.plan.hash = hash;
}

std::vector<KernelTarget> kernel_targets(const BuildOptions &options) {
    std::vector<KernelTarget> targets;
    for (const std::string &name : split_targets(options.target)) {
        targets.push_back(kernel_target(name, options.cuda_cards));
        check_toolchain(targets.back().halide, options.shared_library);
    }
    return targets;
}

} // namespace

TargetFacts target_facts(const BuildOptions &options) { return facts_of(split_targets(options.target)[0], options); }

BuildReport build_library(const std::vector<LibraryProgram> &programs, const Rulebook &rulebook, const BuildOptions &options) {
    internal_check(!programs.empty(), "build: a library of no programs");
    if (!options.name.empty() && !is_name(options.name))
        throw UserError({{}, "build.name", "must be UTF-8 without zero bytes", quote(options.name), ""});
    const std::vector<KernelTarget> targets = kernel_targets(options);
    const auto start = std::chrono::steady_clock::now();
    const ObjectCache cache(options.cache_folder.empty() ? ObjectCache::default_folder() : options.cache_folder);
    const std::string name = programs.size() == 1 && !options.is_collection ? options.name : "";
    const std::vector<LibraryProgram> all = with_statistics(programs, options);
    BuildReport report;
    for (const LibraryProgram &source : all) {
        const std::string own = name.empty() ? source.program.name : name;
        report.programs.push_back(with_targets(compile_forms(source, rulebook, options, report), targets,
                                               source.statistics.empty() ? name : own + statistics_suffix));
    }
    prepare_kernels(report.programs, options, cache);
    auto statistics = report.statistics.begin();
    for (size_t i = 0; i < all.size(); i++) {
        add_plans(report.programs[i], all[i], options);
        Plan &plan = report.programs[i][0].main.plan;
        report.steps += plan.steps.size();
        if (!all[i].statistics.empty()) plan.statistics = plan_statistics(*statistics++, plan);
    }
    check_identifiers(report.programs);
    KernelObjects objects = build_objects(report.programs, options, cache);
    write_library(report.programs, options, objects, cache, [&](std::vector<std::filesystem::path> files) {
        report.files = std::move(files);
        if (cache.has_grown()) cache.trim();
        report.kernels = objects.files.size();
        report.compiled = objects.compiled;
        report.uses = std::move(objects.uses);
        report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        if (options.before_publish) options.before_publish(report);
    });
    return report;
}

} // namespace scalide
