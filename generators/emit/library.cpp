#include "emit/library.h"
#include "emit/library_files.h"
#include "emit/plan_text.h"
#include "ir/text.h"
#include "ir/words.h"
#include "schedules/dispatch.h"
#include "schedules/schedule.h"
#include "transforms/constants/split_constants.h"
#include "transforms/library/cards.h"
#include "transforms/library/library_call.h"
#include "transforms/passes.h"
#include "transforms/value_forms.h"
#include <algorithm>
#include <chrono>

namespace scalide {

TargetFacts target_facts(const BuildOptions &options) {
    const Halide::Target target = parse_target(options.target);
    const Budgets budgets = choose_budgets(target);
    return {options.target,
            library_products(device_name(device_of(target))),
            cards_of(options.target, options.cuda_cards),
            !target.has_gpu_feature() && !options.traceable,
            {budgets.network, budgets.network_step, budgets.digits_line, budgets.digits_element, budgets.maximum_element}};
}

namespace {

/// A program of the library after fusion, for all GPUs, or a variant for some.
struct FusedProgram {
    const LibraryProgram *source;
    Program fused;
    std::vector<int> cards; ///< see Plan
    bool is_variant, is_prepare;
    std::vector<Requirement> requirements;
    std::map<std::string, Origin> origins; ///< by name of the value
    Extent::Bindings values = {};          ///< see Plan
};

const Policy &policy_of(const LibraryProgram &source, const BuildOptions &options) {
    return source.policy ? *source.policy : options.policy;
}

/// Returns the forms of a program for values of its symbols (transforms/value_forms.h). `expanded`: the program in base operators. A matmul
/// with one row or column is another sequence of base operators, so it is expanded again. Kernels for GPUs have no such forms: there the
/// tiles of a kernel do not depend on the number of rows.
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

/// Returns the fused program, followed by its variants and its prepare program.
std::vector<FusedProgram> fuse_program(const LibraryProgram &source, const Rulebook &rulebook, const BuildOptions &options,
                                       const TargetFacts &facts, BuildReport &report) {
    std::vector<NumericsDecision> decisions;
    std::map<std::string, Origin> origins; // kernels do not keep names
    const auto after_pass = [&](const std::string &pass, const Program &program) {
        if (options.after_pass) options.after_pass(pass, program);
        if (pass == "assign_numerics") report.products.add(product_formats(program, rulebook, decisions));
        if (pass == "place_stores") origins = origins_by_name(program);
    };
    const CompileOptions compilation{policy_of(source, options), facts, after_pass, nullptr, &decisions, options.checks_types};
    const auto [expanded, prepare] = split_constants(to_base_operators(source.program, rulebook, compilation));
    Program fused = to_kernels(expanded, rulebook, compilation);
    for (const std::string &left : scales_left_to_kernels(expanded, facts))
        report.left_to_kernels.push_back(name_to_string(expanded.name) + "." + left);
    std::vector<CardProgram> variants = fuse_for_cards(expanded, fused, facts);
    const std::vector<Requirement> requirements = open_requirements(expanded);
    std::vector<FusedProgram> programs{
        {&source, std::move(fused), variants.empty() ? std::vector<int>() : facts.cards, false, false, requirements, origins}};
    const auto add_variant = [&](Program variant) -> FusedProgram & {
        return programs.emplace_back(FusedProgram{&source, std::move(variant), {}, true, false, requirements, origins});
    };
    for (CardProgram &variant : variants) {
        for (const int card : variant.cards) std::erase(programs[0].cards, card);
        add_variant(std::move(variant.fused)).cards = std::move(variant.cards);
    }
    if (prepare) {
        FusedProgram &once = add_variant(to_kernels(*prepare, rulebook, compilation));
        once.is_prepare = true;
        once.requirements = open_requirements(*prepare);
    }
    for (auto &[values, form] : fuse_forms(expanded, programs[0].fused, rulebook, compilation, parse_target(options.target)))
        add_variant(std::move(form)).values = values;
    return programs;
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
    const Halide::Target target = parse_target(options.target);
    plan.target = target.to_string();
    plan.device = device_of(target);
    plan.numerics = policy_of(*source.source, options).name;
    plan.hash = hash_text(identity);
    return plan;
}

} // namespace

BuildReport build_library(const std::vector<LibraryProgram> &programs, const Rulebook &rulebook, const BuildOptions &options) {
    internal_check(!programs.empty(), "build: a library of no programs");
    if (!options.name.empty() && !is_name(options.name))
        throw UserError({{}, "build.name", "must be UTF-8 without zero bytes", quote(options.name), ""});
    const KernelTarget target = kernel_target(options.target, options.cuda_cards);
    check_toolchain(target.halide, options.shared_library);
    const auto start = std::chrono::steady_clock::now();
    const ObjectCache cache(options.cache_folder.empty() ? ObjectCache::default_folder() : options.cache_folder);
    const TargetFacts facts = target_facts(options);
    BuildReport report;
    std::vector<FusedProgram> made;
    for (const LibraryProgram &source : programs) {
        std::ranges::move(fuse_program(source, rulebook, options, facts, report), std::back_inserter(made));
    }
    std::vector<Program> fused;
    for (FusedProgram &program : made) {
        if (programs.size() == 1 && !options.name.empty() && !options.is_collection) program.fused.name = options.name;
        fused.push_back(std::move(program.fused));
    }
    std::vector<PreparedProgram> prepared = prepare_kernels(std::move(fused), target, options, cache);
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
    KernelObjects objects = build_objects(prepared, target, options, cache);
    write_library(report.plans, prepared, options, objects, cache, [&](std::vector<std::filesystem::path> files) {
        report.files = std::move(files);
        cache.trim();
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
