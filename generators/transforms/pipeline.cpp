#include "transforms/pipeline.h"
#include "ir/verify.h"

namespace scalide {

namespace {

/// Settings that the text of a program gives win over those of the policy.
ScaleSettings settings_of(const Program &program, const Policy &policy) {
    ScaleSettings settings = policy.scales;
    const auto strategy = program.attributes.find("strategy"), rounding = program.attributes.find("rounding");
    if (strategy != program.attributes.end()) settings.strategy = strategy->second.word;
    if (rounding != program.attributes.end()) {
        const auto parsed = parse_rounding(rounding->second.word);
        if (!parsed) {
            throw UserError(
                {Location(), program.name + ".rounding", "must be one of down, up, nearest, none", to_string(rounding->second), ""});
        }
        settings.rounding = *parsed;
    }
    return settings;
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
    pass(assign_numerics(program, rulebook, options.policy));
    pass(simplify(program, rulebook));
    pass(propagate_scales(program, rulebook, settings_of(program, options.policy)));
    pass(expand(program, rulebook));
    pass(simplify(program, rulebook));
    pass(fuse(program, options.facts));
    return program;
}

} // namespace scalide
