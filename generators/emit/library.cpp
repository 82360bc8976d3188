#include "emit/library.h"
#include "emit/library_files.h"
#include "ir/text.h"
#include <chrono>

namespace scalide {

TargetFacts target_facts(const std::string &text) {
    parse_target(text); // throws for a text that is no target
    return {text};
}

BuildReport build_library(const Program &program, const Rulebook &rulebook, const BuildOptions &options) {
    const auto start = std::chrono::steady_clock::now();
    const Halide::Target target = parse_target(options.target);
    BuildReport report;
    report.fused = compile(program, rulebook, {options.policy, target_facts(options.target), options.after_pass});
    if (!options.name.empty()) report.fused.name = options.name;
    const ObjectCache cache(options.cache_folder.empty() ? ObjectCache::default_folder() : options.cache_folder);
    const PreparedKernels kernels = prepare_kernels(report.fused, options, cache);
    CallOrders call_orders;
    std::string identity = to_string(report.fused);
    for (const auto &[name, kernel] : kernels) {
        call_orders[name] = kernel.call_order;
        identity += kernel.key;
    }
    report.plan = make_plan(report.fused, call_orders);
    report.plan.target = target.to_string();
    report.plan.numerics = options.policy.name;
    report.plan.hash = hash_text(identity);
    const KernelObjects objects = build_objects(kernels, report.fused, options, cache);
    report.files = write_library(report, options, kernels, objects, cache);
    cache.trim();
    report.kernels = objects.files.size();
    report.steps = report.plan.steps.size();
    report.compiled = objects.compiled;
    report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return report;
}

} // namespace scalide
