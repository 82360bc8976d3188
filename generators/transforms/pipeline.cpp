#include "transforms/pipeline.h"
#include "ir/verify.h"
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

} // namespace

const std::vector<std::string> &pass_names() {
    static const std::vector<std::string> names = {
        "infer_types", "inline_calls", "simplify", "assign_numerics", "simplify_2", "propagate_scales", "expand", "simplify_3", "fuse"};
    return names;
}

Program compile(const Program &source, const Rulebook &rulebook, const CompileOptions &options) {
    Program program = source;
    size_t passed = 0;
    const auto pass = [&](Program made) {
        const std::string &name = pass_names()[passed++];
        program = std::move(made);
        verify(program, name == "infer_types" ? "" : name); // what infer_types lets through is the user's
        if (options.after_pass) options.after_pass(name, program);
    };
    pass(infer_types(program, rulebook));
    pass(inline_calls(program, rulebook));
    pass(simplify(program, rulebook));
    pass(assign_numerics(program, rulebook, options.policy, options.decisions));
    pass(simplify(program, rulebook));
    pass(propagate_scales(program, rulebook, settings_of(program, options.policy)));
    pass(expand(program, rulebook));
    pass(simplify(program, rulebook));
    if (options.fusion == nullptr) {
        pass(fuse(program, options.facts));
    } else {
        Fusion fusion = fuse_and_explain(program, options.facts);
        *options.fusion = std::move(fusion.report);
        pass(std::move(fusion.program));
    }
    return program;
}

} // namespace scalide
