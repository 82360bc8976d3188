#include "emit/library.h"
#include "emit/device_code.h"
#include "emit/library_files.h"
#include "ir/text.h"
#include "schedules/dispatch.h"
#include "transforms/library_call.h"
#include <chrono>

namespace scalide {

TargetFacts target_facts(const std::string &text, const std::vector<int> &cards) {
    TargetFacts facts{text, library_products(device_name(device_of(parse_target(text)))), cards};
    if (cards.empty()) facts.cards.assign(cuda_cards.begin(), cuda_cards.end());
    return facts;
}

namespace {

Plan plan_of(const PreparedProgram &program, const LibraryProgram &source, const BuildOptions &options) {
    CallOrders call_orders;
    std::string identity = to_string(program.fused);
    for (const auto &[name, kernel] : program.kernels) {
        call_orders[name] = kernel.call_order;
        identity += kernel.key;
    }
    Plan plan = make_plan(program.fused, call_orders);
    plan.doc = source.doc;
    const Halide::Target target = parse_target(options.target);
    plan.target = target.to_string();
    plan.device = device_of(target);
    plan.numerics = options.policy.name;
    plan.hash = hash_text(identity);
    return plan;
}

} // namespace

BuildReport build_library(const std::vector<LibraryProgram> &programs, const Rulebook &rulebook, const BuildOptions &options) {
    internal_check(!programs.empty(), "build: a library of no programs");
    const KernelTarget target = kernel_target(options.target, options.cuda_cards);
    check_toolchain(target.halide, options.shared_library);
    const auto start = std::chrono::steady_clock::now();
    const ObjectCache cache(options.cache_folder.empty() ? ObjectCache::default_folder() : options.cache_folder);
    std::vector<Program> fused;
    BuildReport report;
    CompileOptions compilation{options.policy, target_facts(options.target, target.cuda ? target.cuda->cards : std::vector<int>()), {}};
    compilation.after_pass = [&](const std::string &pass, const Program &program) {
        if (options.after_pass) options.after_pass(pass, program);
        if (pass != "simplify_3") return;
        for (const std::string &left : scales_left_to_kernels(program, compilation.facts))
            report.left_to_kernels.push_back(program.name + "." + left);
    };
    for (const LibraryProgram &source : programs) {
        fused.push_back(compile(source.program, rulebook, compilation));
        if (programs.size() == 1 && !options.name.empty()) fused[0].name = options.name;
    }
    std::vector<PreparedProgram> prepared = prepare_kernels(std::move(fused), target, options, cache);
    for (size_t i = 0; i < prepared.size(); i++) {
        report.plans.push_back(plan_of(prepared[i], programs[i], options));
        report.symbols.push_back(prepared[i].symbols());
        report.steps += report.plans.back().steps.size();
    }
    KernelObjects objects = build_objects(prepared, target, options, cache);
    report.files = write_library(report.plans, prepared, options, objects, cache);
    cache.trim();
    for (PreparedProgram &program : prepared) report.fused.push_back(std::move(program.fused));
    report.kernels = objects.files.size();
    report.compiled = objects.compiled;
    report.uses = std::move(objects.uses);
    report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return report;
}

} // namespace scalide
