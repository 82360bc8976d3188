#include "emit/library.h"
#include "emit/library_files.h"
#include "emit/plan_text.h"
#include "ir/text.h"
#include "ir/words.h"
#include "lower/values/panels.h"
#include "schedules/dispatch.h"
#include "schedules/schedule.h"
#include "transforms/analysis/passes.h"
#include "transforms/constants/pack_constants.h"
#include "transforms/constants/split_constants.h"
#include "transforms/forms/cards.h"
#include "transforms/forms/value_forms.h"
#include "transforms/library/library_call.h"
#include <algorithm>
#include <chrono>

namespace scalide {

namespace {

TargetFacts facts_of(const std::string &name, const BuildOptions &options) {
    const Halide::Target target = parse_target(name);
    const Budgets budgets = choose_budgets(target);
    return {name,
            library_products(device_name(device_of(target))),
            cards_of(name, options.cuda_cards),
            !target.has_gpu_feature() && !options.traceable,
            {budgets.network, budgets.network_step, budgets.digits_line, budgets.digits_element, budgets.maximum_element}};
}

/// A program of the library after fusion, for all machines, or a variant for some.
struct FusedProgram {
    const LibraryProgram *source;
    const KernelTarget *target;
    Program fused;
    std::vector<int> cards; ///< see Plan
    bool is_variant, is_prepare;
    std::vector<Requirement> requirements;
    std::map<std::string, Origin> origins; ///< by name of the value
    Extent::Bindings values = {};          ///< see Plan
    std::string cpu = {};                  ///< see Plan
};

const Policy &policy_of(const LibraryProgram &source, const BuildOptions &options) {
    return source.policy ? *source.policy : options.policy;
}

/// Returns the forms of a program for values of its symbols (transforms/forms/value_forms.h). `expanded`: the program in base operators. A
/// matmul with one row or column is another sequence of base operators, so it is expanded again. Kernels for GPUs have no such forms: there
/// the tiles of a kernel do not depend on the number of rows.
std::vector<std::pair<Extent::Bindings, Program>> fuse_forms(const Program &expanded, const Program &fused, const Rulebook &rulebook,
                                                             const CompileOptions &compilation, const Halide::Target &target) {
    std::vector<std::pair<Extent::Bindings, Program>> forms;
    if (target.has_gpu_feature()) return forms;
    CompileOptions silent = compilation;
    silent.after_pass = nullptr;
    for (const Extent::Bindings &values : value_forms(expanded)) {
        const Program special = simplify(expand(with_values(expanded, values), rulebook, silent.facts), rulebook);
        if (auto form = with_interface_of(fused, to_kernels(special, rulebook, silent))) forms.emplace_back(values, std::move(*form));
    }
    return forms;
}

/// Returns the layout in which a kernel packs its right operand; nothing if it packs none, or reads it from panels already.
std::optional<PanelLayout> choose_panels(const Program &kernel, const Halide::Target &target, const Budgets &budgets) {
    if (kernel.attributes.contains(panels_attribute)) return {};
    const std::string &kind = kernel.attributes.at("kind").word;
    if (kind == "contract") return contract_panels(kernel, target, budgets);
    if (kind == "window") return convolution_panels(kernel, target);
    return {};
}

/// Moves the packing of constants from the runs of `programs`, the forms of one program, to its prepare program. Kernels for GPUs read
/// operands without packing. A traceable program keeps each operand.
void pack_for_target(std::vector<FusedProgram> &programs, Program &prepare, const TargetFacts &facts, const Halide::Target &target) {
    if (!facts.prepares_kernels) return;
    std::vector<Program *> forms;
    for (FusedProgram &program : programs) forms.push_back(&program.fused);
    const Budgets budgets = choose_budgets(target);
    pack_constants(forms, prepare, [&](const Program &kernel) { return choose_panels(kernel, target, budgets); });
}

/// Returns the fused program, followed by its variants and its prepare program.
std::vector<FusedProgram> fuse_program(const LibraryProgram &source, const Rulebook &rulebook, const BuildOptions &options,
                                       const KernelTarget &target, const TargetFacts &facts, BuildReport &report) {
    PolicyDecisions decisions;
    std::map<std::string, Origin> origins; // kernels do not keep names
    std::vector<PartialUpdate> updates;
    const auto after_pass = [&](const std::string &pass, const Program &program) {
        if (options.after_pass) options.after_pass(pass, program);
        if (pass == "simplify") updates = partial_updates(program);
        if (pass == "assign_numerics") report.products.add(product_formats(program, rulebook, decisions));
        if (pass == "place_stores") origins = origins_by_name(program);
    };
    const CompileOptions compilation{policy_of(source, options), facts, after_pass, nullptr, &decisions, options.checks_types};
    auto [expanded, prepare] = split_constants(to_base_operators(source.program, rulebook, compilation));
    Program fused = to_kernels(expanded, rulebook, compilation);
    for (CopiedArgument &copied : copied_arguments(fused, updates)) report.copied.push_back(std::move(copied));
    for (const std::string &left : scales_left_to_kernels(expanded, facts))
        report.left_to_kernels.push_back(name_to_string(expanded.name) + "." + left);
    std::vector<CardProgram> variants = fuse_for_cards(expanded, fused, facts);
    const std::vector<Requirement> requirements = open_requirements(expanded);
    std::vector<FusedProgram> programs{
        {&source, &target, std::move(fused), variants.empty() ? std::vector<int>() : facts.cards, false, false, requirements, origins}};
    const auto add_variant = [&](Program variant) -> FusedProgram & {
        return programs.emplace_back(FusedProgram{&source, &target, std::move(variant), {}, true, false, requirements, origins});
    };
    for (CardProgram &variant : variants) {
        for (const int card : variant.cards) std::erase(programs[0].cards, card);
        add_variant(std::move(variant.fused)).cards = std::move(variant.cards);
    }
    for (auto &[values, form] : fuse_forms(expanded, programs[0].fused, rulebook, compilation, target.halide))
        add_variant(std::move(form)).values = values;
    if (prepare) {
        pack_for_target(programs, *prepare, facts, target.halide);
        FusedProgram &once = add_variant(to_kernels(simplify(*prepare, rulebook), rulebook, compilation));
        once.is_prepare = true;
        once.requirements = open_requirements(*prepare);
    }
    return programs;
}

/// Returns the fused program for the first target, followed by its variants: for the first target, then for each other target.
std::vector<FusedProgram> fuse_for_targets(const LibraryProgram &source, const Rulebook &rulebook, const BuildOptions &options,
                                           const std::vector<KernelTarget> &targets, BuildReport &report) {
    const std::vector<std::string> names = split_targets(options.target);
    std::vector<FusedProgram> made = fuse_program(source, rulebook, options, targets[0], facts_of(names[0], options), report);
    BuildOptions silent = options; // a pass and a number format are reported once
    silent.after_pass = nullptr;
    for (size_t i = 1; i < targets.size(); i++) {
        BuildReport same;
        for (FusedProgram &variant : fuse_program(source, rulebook, silent, targets[i], facts_of(names[i], options), same)) {
            variant.cpu = names[i];
            variant.is_variant = true;
            made.push_back(std::move(variant));
        }
    }
    return made;
}

Plan plan_of(const PreparedProgram &program, const FusedProgram &source, const BuildOptions &options) {
    CallOrders call_orders;
    std::string identity = to_string(program.fused);
    for (const auto &[name, kernel] : program.kernels) {
        call_orders[name] = kernel.call_order;
        identity += kernel.key;
    }
    Plan plan = make_plan(program.fused, call_orders);
    for (PlanBuffer &buffer : plan.buffers) {
        const auto origin = source.origins.find(buffer.name);
        if (origin != source.origins.end()) buffer.origin = origin->second;
    }
    plan.doc = source.source->doc;
    plan.is_variant = source.is_variant;
    plan.is_prepare = source.is_prepare;
    plan.requirements = source.requirements;
    plan.cards = source.cards;
    plan.values = source.values;
    plan.cpu = source.cpu;
    plan.target = source.target->halide.to_string();
    plan.device = device_of(source.target->halide);
    plan.require_libraries = options.require_libraries || policy_of(*source.source, options).require_libraries;
    plan.numerics = policy_of(*source.source, options).name;
    plan.hash = hash_text(identity);
    return plan;
}

std::vector<KernelTarget> kernel_targets(const BuildOptions &options) {
    std::vector<KernelTarget> targets;
    for (const std::string &name : split_targets(options.target)) {
        targets.push_back(kernel_target(name, options.cuda_cards));
        check_toolchain(targets.back().halide, options.shared_library);
    }
    return targets;
}

/// Adds the plans of the programs, with their symbols. The hash of a program depends on its variants.
void add_plans(BuildReport &report, const std::vector<PreparedProgram> &prepared, const std::vector<FusedProgram> &made,
               const BuildOptions &options) {
    std::string *hash = nullptr; // of the program to which the variants belong
    report.plans.reserve(prepared.size());
    for (size_t i = 0; i < prepared.size(); i++) {
        Plan &plan = report.plans.emplace_back(plan_of(prepared[i], made[i], options));
        report.symbols.push_back(prepared[i].symbols());
        if (plan.is_variant) {
            *hash = hash_text(*hash + plan.hash);
        } else {
            hash = &plan.hash;
            report.steps += plan.steps.size();
        }
    }
    check_identifiers(report.plans);
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
    BuildReport report;
    std::vector<FusedProgram> made;
    for (const LibraryProgram &source : programs)
        std::ranges::move(fuse_for_targets(source, rulebook, options, targets, report), std::back_inserter(made));
    std::vector<TargetedProgram> fused;
    for (FusedProgram &program : made) {
        if (programs.size() == 1 && !options.name.empty() && !options.is_collection) program.fused.name = options.name;
        fused.push_back({std::move(program.fused), program.target});
    }
    std::vector<PreparedProgram> prepared = prepare_kernels(std::move(fused), options, cache);
    add_plans(report, prepared, made, options);
    KernelObjects objects = build_objects(prepared, options, cache);
    write_library(report.plans, prepared, options, objects, cache, [&](std::vector<std::filesystem::path> files) {
        report.files = std::move(files);
        if (cache.has_grown()) cache.trim();
        for (PreparedProgram &program : prepared) report.fused.push_back(std::move(program.fused));
        report.kernels = objects.files.size();
        report.compiled = objects.compiled;
        report.uses = std::move(objects.uses);
        report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        if (options.before_publish) options.before_publish(report);
    });
    return report;
}

} // namespace scalide
