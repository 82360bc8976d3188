#include "transforms/pipeline.h"
#include "ir/regions.h"
#include "ir/verify.h"
#include "rulebook/random_key.h"
#include "transforms/constants/split_constants.h"
#include "transforms/forms/cards.h"
#include "transforms/forms/value_forms.h"
#include "transforms/fusion/fuse.h"
#include "transforms/library/library_call.h"
#include "transforms/loops/products_of_steps.h"
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

/// What passes work on.
struct State {
    Compiled compiled;
    std::vector<PartialUpdate> updates; ///< of the user's program
    NamedTensors tensors;               ///< of the user's program, for statistics
    Program base;                       ///< the main program at the end of Stage::constants; its forms are made from it again
    Program &main() { return compiled.forms.main.program; }
};

/// Gives the forms for values the arguments and results of the main program, with symbols, because bind takes the same arrays for all
/// forms. Their kernels keep numbers, so verify() does not accept the result.
void take_interfaces(MachineForms<Form> &forms) {
    for (Form &variant : forms.variants)
        if (!variant.when.values.empty()) variant.program = with_interface_of(forms.main.program, std::move(variant.program)).value();
}

/// The programs that a pass made.
using Made = std::vector<const Program *>;

/// One of `rewrite` and `extend` is set.
struct Pass {
    std::string_view name;
    Stage stage;
    std::vector<Invariant> holds; ///< invariants of what it makes
    /// Returns the main program that replaces `program`.
    std::function<Program(const Program &program, const Setting &setting, State &state)> rewrite;
    Made (*extend)(State &state, const Setting &setting) = nullptr; ///< makes other programs, too
    bool is_always_checked = true;                                  ///< false: only with CompileOptions::checks_types
};

using enum Invariant;

Program run_simplify(const Program &program, const Setting &setting, State &) { return simplify(program, setting.rulebook); }

Program simplify_source(const Program &program, const Setting &setting, State &state) {
    if (!setting.options.statistics.empty()) state.tensors = {named_tensors(program), named_tensors_of_regions(program)};
    Program simple = simplify(program, setting.rulebook);
    if (setting.options.takes_notes) state.updates = partial_updates(simple);
    return simple;
}

Program batch(const Program &program, const Setting &setting, State &state) {
    if (!has_regions(program)) return program;
    std::vector<std::string> *notes = setting.options.takes_notes ? &state.compiled.notes.left_loops : nullptr;
    return simplify(batch_products(program, setting.rulebook, notes), setting.rulebook);
}

Program assign_formats(const Program &program, const Setting &setting, State &state) {
    check_arithmetic(program);
    if (!setting.options.takes_notes) return assign_numerics(program, setting.rulebook, setting.options.policy);
    Notes &notes = state.compiled.notes;
    Program assigned = assign_numerics(program, setting.rulebook, setting.options.policy, &notes.decisions);
    notes.formats = product_formats(assigned, setting.rulebook, notes.decisions);
    return assigned;
}

/// GPUs have instructions for functions. With `arithmetic: exact`, their bits are those of CPUs, in f32.
Program choose(const Program &program, const Setting &setting, State &) {
    return setting.options.facts.is_gpu || scalide::setting(program, "arithmetic", "device") == "exact" ? program
                                                                                                        : choose_accuracy(program);
}

/// Later passes see statistics as ordinary results. No pass before this one sees them, so they change no decision of the policy.
Program collect(const Program &program, const Setting &setting, State &state) {
    if (setting.options.statistics.empty()) return program;
    Program made = program;
    state.compiled.statistics =
        collect_statistics(made, setting.rulebook, setting.options.statistics, state.tensors, setting.options.facts.is_gpu);
    return simplify(made, setting.rulebook);
}

Made split(State &state, const Setting &setting) {
    MachineForms<Form> &forms = state.compiled.forms;
    Made made{&forms.main.program};
    if (setting.options.splits_constants) {
        auto [main, prepare] = split_constants(forms.main.program);
        forms.main.program = std::move(main);
        if (prepare) made.push_back(&forms.prepare.emplace(Form{std::move(*prepare)}).program);
    }
    if (setting.options.takes_notes) state.compiled.notes.left_to_kernels = scales_left_to_kernels(state.main(), setting.options.facts);
    forms.main.requirements = open_requirements(state.main());
    state.base = state.main();
    return made;
}

Program fuse_main(const Program &program, const Setting &setting, State &state) {
    if (!setting.options.takes_notes) return form_kernels(program, setting.options.facts);
    Notes &notes = state.compiled.notes;
    state.compiled.forms.main.origins = origins_by_name(program); // kernels keep no names
    Program fused = form_kernels(program, setting.options.facts, &notes.fusion);
    notes.copied = copied_arguments(fused, state.updates);
    return fused;
}

/// Returns the variants from number `first` on.
Made variants_from(const State &state, size_t first) {
    Made made;
    const std::vector<Form> &variants = state.compiled.forms.variants;
    for (size_t i = first; i < variants.size(); i++) made.push_back(&variants[i].program);
    return made;
}

void add_variant(State &state, Program program, FormCondition when) {
    MachineForms<Form> &forms = state.compiled.forms;
    forms.variants.push_back({std::move(program), std::move(when), forms.main.requirements, forms.main.origins});
}

/// Kernels for GPUs have no forms for values, because the tiles of a kernel do not depend on the number of rows there. A matmul with one
/// row or column is another sequence of base operators, so it is expanded again.
Made add_value_forms(State &state, const Setting &setting) {
    const size_t first = state.compiled.forms.variants.size();
    const TargetFacts &facts = setting.options.facts;
    if (facts.is_gpu) return {};
    for (const Extent::Bindings &values : value_forms(state.base)) {
        const Program special =
            simplify(expand(with_values(state.base, with_group_values(state.base, values)), setting.rulebook, facts), setting.rulebook);
        Program form = fuse(special, facts);
        if (with_interface_of(state.main(), form)) add_variant(state, std::move(form), {{}, values});
    }
    return variants_from(state, first);
}

Made add_card_forms(State &state, const Setting &setting) {
    const TargetFacts &facts = setting.options.facts;
    const size_t first = state.compiled.forms.variants.size();
    std::vector<int> others = facts.cards;
    for (CardProgram &variant : fuse_for_cards(state.base, state.main(), facts)) {
        for (const int card : variant.cards) std::erase(others, card);
        add_variant(state, std::move(variant.fused), {std::move(variant.cards), {}});
    }
    const Made made = variants_from(state, first);
    if (!made.empty()) state.compiled.forms.main.when.cards = std::move(others);
    return made;
}

Made pack(State &state, const Setting &setting) {
    MachineForms<Form> &forms = state.compiled.forms;
    const bool has_operands = forms.prepare || has_regions(forms.main.program);
    if (!setting.options.choose_panels || !has_operands) return {};
    std::vector<Program *> programs{&forms.main.program};
    for (Form &variant : forms.variants) programs.push_back(&variant.program);
    pack_operands(programs, forms.prepare ? &forms.prepare->program : nullptr, setting.options.choose_panels, [&](const Program &program) {
        const TargetFacts &facts = setting.options.facts;
        return form_kernels(run_fusion_passes(simplify(program, setting.rulebook), facts), facts);
    });
    return {programs.begin(), programs.end()};
}

Made fuse_prepare(State &state, const Setting &setting) {
    std::optional<Form> &prepare = state.compiled.forms.prepare;
    if (!prepare) return {};
    prepare->requirements = open_requirements(prepare->program);
    const Program shaped = run_fusion_passes(simplify(prepare->program, setting.rulebook), setting.options.facts);
    prepare->origins = origins_by_name(shaped); // kernels keep no names
    prepare->program = form_kernels(shaped, setting.options.facts);
    return {&prepare->program};
}

/// Invariants of programs in base operators, and of calls of kernels.
const std::vector<Invariant> base_program{typed, no_calls, wide, no_scaled, base}, kernel_program{no_scaled, kernels};

/// Random rounding needs the nodes of all steps, which have random bits of their own. On a GPU, a loop of few steps is faster without the
/// host, which also has to wait for the number of a branch.
Unroll unroll_of(const Setting &setting) {
    const Policy &policy = setting.options.policy;
    const auto is_random = [&](const Insertion &insertion) {
        const Rule *rule = setting.rulebook.find(insertion.op);
        return rule != nullptr && takes_key(*rule);
    };
    const auto inserts_random = [&](const PolicyRule &rule) {
        return rule.place != PolicyRule::Place::program_result && std::ranges::any_of(rule.insert, is_random); // results are in no loop
    };
    const bool needs_all = std::ranges::any_of(policy.rules, inserts_random) || policy.scales.rounding == Rounding::stochastic;
    if (needs_all) return Unroll::all;
    return setting.options.facts.is_gpu && setting.options.unroll == Unroll::short_ones ? Unroll::possible : setting.options.unroll;
}

std::vector<Pass> list_passes() {
    std::vector<Pass> list{
        {"infer_types", Stage::calls, {typed}, [](const Program &p, const Setting &s, State &) { return infer_types(p, s.rulebook); }},
        {"inline_calls",
         Stage::calls,
         {typed, no_calls},
         [](const Program &p, const Setting &s, State &) { return inline_calls(p, s.rulebook, unroll_of(s)); }},
        {"simplify", Stage::formats, {typed, no_calls}, simplify_source},
        {"batch_products", Stage::formats, {typed, no_calls}, batch},
        {"assign_numerics", Stage::formats, {typed, no_calls, wide}, assign_formats},
        {"simplify_2", Stage::base, {typed, no_calls, wide}, run_simplify},
        {"propagate_scales",
         Stage::base,
         {typed, no_calls, wide, no_scaled},
         [](const Program &p, const Setting &s, State &) { return propagate_scales(p, s.rulebook, settings_of(p, s.options.policy)); }},
        {"expand", Stage::base, base_program,
         [](const Program &p, const Setting &s, State &) { return expand(p, s.rulebook, s.options.facts); }},
        {"simplify_3", Stage::base, base_program, run_simplify},
        {"choose_accuracy", Stage::base, base_program, choose},
        {"collect_statistics", Stage::base, base_program, collect},
        {"split_constants", Stage::constants, base_program, {}, split},
    };
    // Kernels would violate the same invariants, and kernels are always checked. These checks take a seventh of the time of all passes.
    for (const FusionPass &pass : fusion_passes())
        list.push_back({pass.name, Stage::stores, base_program,
                        [run = pass.run](const Program &p, const Setting &s, State &) { return run(p, s.options.facts); }, nullptr, false});
    list.push_back({"fuse", Stage::kernels, kernel_program, fuse_main});
    list.push_back({"card_forms", Stage::forms, kernel_program, {}, add_card_forms});
    list.push_back({"value_forms", Stage::forms, kernel_program, {}, add_value_forms});
    list.push_back({"pack_operands", Stage::forms, kernel_program, {}, pack});
    list.push_back({"fuse_prepare", Stage::forms, kernel_program, {}, fuse_prepare});
    return list;
}

const std::vector<Pass> &passes() {
    static const std::vector<Pass> list = list_passes();
    return list;
}

/// Checks a program that a pass made, then calls `after_pass`. An error after the first pass is the user's, so verify() then blames the
/// text of the program.
void finish(const Program &program, const Pass &pass, const Setting &setting) {
    const std::string name(pass.name);
    if (pass.is_always_checked || setting.options.checks_types) {
        verify(program, &pass == &passes().front() ? "" : name);
        for (const Invariant invariant : pass.holds)
            if (invariant != typed || setting.options.checks_types) check_invariant(invariant, program, setting.rulebook, name);
    }
    if (setting.options.after_pass) setting.options.after_pass(name, program);
}

} // namespace

const std::vector<std::string> &pass_names() {
    static const std::vector<std::string> names = [] {
        std::vector<std::string> all;
        for (const Pass &pass : passes()) all.emplace_back(pass.name);
        return all;
    }();
    return names;
}

bool has_formats(std::string_view name) {
    const auto end = std::ranges::upper_bound(passes(), Stage::formats, {}, &Pass::stage); // the policy is applied at the end of the stage
    return std::ranges::find(passes(), name, &Pass::name) >= end - 1;
}

Compiled run_passes(const Program &program, const Rulebook &rulebook, const CompileOptions &options, Stage last) {
    const Setting setting{rulebook, options};
    State state;
    state.main() = program;
    for (const Pass &pass : passes()) {
        if (pass.stage > last) break;
        Made made;
        if (pass.rewrite) {
            state.main() = pass.rewrite(state.main(), setting, state);
            made = {&state.main()};
        } else {
            made = pass.extend(state, setting);
        }
        for (const Program *one : made) finish(*one, pass, setting);
    }
    take_interfaces(state.compiled.forms);
    return std::move(state.compiled);
}

Program compile(const Program &program, const Rulebook &rulebook, const CompileOptions &options) {
    return run_passes(program, rulebook, options, Stage::kernels).forms.main.program;
}

Program to_base_operators(const Program &program, const Rulebook &rulebook, const CompileOptions &options) {
    return run_passes(program, rulebook, options, Stage::base).forms.main.program;
}

} // namespace scalide
