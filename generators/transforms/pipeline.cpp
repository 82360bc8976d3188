#include "transforms/pipeline.h"
#include "ir/verify.h"
#include "transforms/fusion/fuse.h"
#include "transforms/spec/invariants.h"
#include <algorithm>

namespace scalide {

namespace {

/// The word of a setting in the text of a program; `fallback` when it is not there.
std::string setting(const Program &program, const std::string &name, const std::string &fallback) {
    const auto found = program.attributes.find(name);
    return found == program.attributes.end() ? fallback : found->second.word;
}

/// Settings that the text of a program gives win over those of the policy.
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

/// What passes are told besides the program.
struct Setting {
    const Rulebook &rulebook;
    const CompileOptions &options;
};

struct Pass {
    std::string_view name;
    Program (*run)(const Program &program, const Setting &setting);
    std::vector<Invariant> holds; ///< of what it makes
};

using enum Invariant;

/// The passes up to base operators. What infer_types lets through is the user's: verify then blames the text.
const std::vector<Pass> &passes() {
    static const std::vector<Pass> passes = {
        {"infer_types", [](const Program &p, const Setting &s) { return infer_types(p, s.rulebook); }, {typed}},
        {"inline_calls", [](const Program &p, const Setting &s) { return inline_calls(p, s.rulebook); }, {typed, no_calls}},
        {"simplify", [](const Program &p, const Setting &s) { return simplify(p, s.rulebook); }, {typed, no_calls}},
        {"assign_numerics",
         [](const Program &p, const Setting &s) { return assign_numerics(p, s.rulebook, s.options.policy, s.options.decisions); },
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

/// Of what the passes of fusion make, and the last of them.
const std::vector<Invariant> shaped = {typed, no_calls, wide, no_scaled, base}, fused = {no_scaled, kernels};

void check(const Program &program, const std::string &pass, const std::vector<Invariant> &holds, const Setting &setting) {
    verify(program, pass == passes()[0].name ? "" : pass);
    for (const Invariant invariant : holds)
        if (invariant != typed || setting.options.checks_types) check_invariant(invariant, program, setting.rulebook, pass);
}

/// Checks what a pass has made, then shows it.
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
        // What these break, the kernels break too, and those are always checked: seven checks are a seventh of the time of all passes.
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
