#include "transforms/pipeline.h"
#include "ir/verify.h"
#include "transforms/fusion/fuse.h"
#include "transforms/spec/invariants.h"
#include <algorithm>

namespace scalide {

namespace {

/// Returns the word of a setting in the text of a program, or `fallback` if the program has no such setting.
std::string setting(const Program &program, const std::string &name, const std::string &fallback) {
    const auto found = program.attributes.find(name);
    return found == program.attributes.end() ? fallback : found->second.word;
}

/// Settings in the text of a program override the policy.
ScaleSettings settings_of(const Program &program, const Policy &policy) {
    const std::string strategy = setting(program, "strategy", policy.scales.strategy);
    const std::string word = setting(program, "rounding", std::string(to_string(policy.scales.rounding)));
    const auto rounding = parse_rounding(word);
    if (std::ranges::find(strategies, strategy) == std::end(strategies))
        throw UserError({Location(), program.name + ".strategy", "must be one of l2, max, unit", strategy, ""});
    if (!rounding)
        throw UserError({Location(), program.name + ".rounding", "must be one of down, up, nearest, none, stochastic", word, ""});
    return {strategy, *rounding, setting(program, "key", policy.scales.key)};
}

void check_arithmetic(const Program &program) {
    const std::string word = setting(program, "arithmetic", "device");
    if (word != "device" && word != "exact")
        throw UserError({Location(), program.name + ".arithmetic", "must be one of device, exact", word, ""});
}

/// Everything that passes get in addition to the program.
struct Setting {
    const Rulebook &rulebook;
    const CompileOptions &options;
};

struct Pass {
    std::string_view name;
    Program (*run)(const Program &program, const Setting &setting);
    std::vector<Invariant> holds; ///< invariants of the result
};

using enum Invariant;

/// The passes that lead to base operators. An error after infer_types is the user's, so verify() then blames the program text.
const std::vector<Pass> &passes() {
    static const std::vector<Pass> passes = {
        {"infer_types", [](const Program &p, const Setting &s) { return infer_types(p, s.rulebook); }, {typed}},
        {"inline_calls", [](const Program &p, const Setting &s) { return inline_calls(p, s.rulebook); }, {typed, no_calls}},
        {"simplify", [](const Program &p, const Setting &s) { return simplify(p, s.rulebook); }, {typed, no_calls}},
        {"assign_numerics",
         [](const Program &p, const Setting &s) {
             check_arithmetic(p);
             return assign_numerics(p, s.rulebook, s.options.policy, s.options.decisions);
         },
         {typed, no_calls, wide}},
        {"simplify_2", [](const Program &p, const Setting &s) { return simplify(p, s.rulebook); }, {typed, no_calls, wide}},
        {"propagate_scales",
         [](const Program &p, const Setting &s) { return propagate_scales(p, s.rulebook, settings_of(p, s.options.policy)); },
         {typed, no_calls, wide, no_scaled}},
        {"expand",
         [](const Program &p, const Setting &s) { return expand(p, s.rulebook, s.options.facts); },
         {typed, no_calls, wide, no_scaled, base}},
        {"simplify_3",
         [](const Program &p, const Setting &s) { return simplify(p, s.rulebook); },
         {typed, no_calls, wide, no_scaled, base}},
    };
    return passes;
}

/// Invariants after the passes of fusion, and after the last one.
const std::vector<Invariant> shaped = {typed, no_calls, wide, no_scaled, base}, fused = {no_scaled, kernels};

void check(const Program &program, const std::string &pass, const std::vector<Invariant> &holds, const Setting &setting) {
    verify(program, pass == passes()[0].name ? "" : pass);
    for (const Invariant invariant : holds)
        if (invariant != typed || setting.options.checks_types) check_invariant(invariant, program, setting.rulebook, pass);
}

/// Checks the result of a pass, then calls `after_pass`.
void finish(const Program &program, std::string_view pass, const std::vector<Invariant> &holds, const Setting &setting) {
    check(program, std::string(pass), holds, setting);
    if (setting.options.after_pass) setting.options.after_pass(std::string(pass), program);
}

} // namespace

const std::vector<std::string> &pass_names() {
    static const std::vector<std::string> names = [] {
        std::vector<std::string> all;
        for (const Pass &pass : passes()) all.emplace_back(pass.name);
        for (const FusionPass &pass : fusion_passes()) all.emplace_back(pass.name);
        all.emplace_back("fuse");
        return all;
    }();
    return names;
}

Program to_formats(const Program &source, const Rulebook &rulebook, const Policy &policy, PolicyDecisions *decisions) {
    CompileOptions options;
    options.policy = policy;
    options.decisions = decisions;
    const Setting setting{rulebook, options};
    Program program = source;
    for (const Pass &pass : passes()) {
        program = pass.run(program, setting);
        if (pass.name == "assign_numerics") break;
    }
    return program;
}

Program to_base_operators(const Program &source, const Rulebook &rulebook, const CompileOptions &options) {
    const Setting setting{rulebook, options};
    Program program = source;
    for (const Pass &pass : passes()) {
        program = pass.run(program, setting);
        finish(program, pass.name, pass.holds, setting);
    }
    return program;
}

Program to_kernels(const Program &source, const Rulebook &rulebook, const CompileOptions &options) {
    const Setting setting{rulebook, options};
    Program program = source;
    for (const FusionPass &pass : fusion_passes()) {
        program = pass.run(program, options.facts);
        // Kernels would violate the same invariants, and kernels are always checked. These seven checks take a seventh of the time of all
        // passes.
        if (options.checks_types) check(program, std::string(pass.name), shaped, setting);
        if (options.after_pass) options.after_pass(std::string(pass.name), program);
    }
    program = form_kernels(program, options.facts, options.fusion);
    finish(program, "fuse", fused, setting);
    return program;
}

Program compile(const Program &source, const Rulebook &rulebook, const CompileOptions &options) {
    return to_kernels(to_base_operators(source, rulebook, options), rulebook, options);
}

} // namespace scalide
