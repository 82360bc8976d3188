#include "interpret/law_check.h"
#include <algorithm>
#include <cmath>

namespace scalide {

namespace {

constexpr double real_tolerance = 1e-12;
/// Beyond this limit, the f32 data times a clamped scale may overflow, or its reciprocal may.
constexpr double widest = 0x1p220;
/// The name of an additional argument, for scales with stochastic rounding. No operand has this name.
const std::string key_name = "law_key";

/// Returns the strategies that must be tested. If the rule has the same scale for all strategies, one is enough.
std::vector<std::string> strategies_of(const Rule &rule) {
    if (rule.has_scale() && rule.scale.contains("")) return {"l2"};
    return {std::begin(strategies), std::end(strategies)};
}

std::vector<ScaleSettings> all_settings(const Rule &rule) {
    std::vector<ScaleSettings> settings;
    for (const std::string &strategy : strategies_of(rule))
        for (Rounding rounding : {Rounding::down, Rounding::up, Rounding::nearest, Rounding::none})
            settings.push_back({strategy, rounding});
    settings.push_back({"l2", Rounding::stochastic, key_name}); // stochastic rounding does not depend on the strategy
    return settings;
}

std::string words_of(const ScaleSettings &settings) {
    return ", strategy " + settings.strategy + ", rounding " + std::string(to_string(settings.rounding));
}

constexpr const char *declare_rounded =
    "The values differ in the last bits. If the operator rounds differently for another scale (as log does), "
    "declare 'check: {scaling: rounded}'";

/// The results of a propagated program as numbers, with their scales. The scale is 0 for a result without a scale.
struct Products {
    std::vector<Array> values;
    std::vector<double> scales;
};

Products multiply(const Program &source, const std::vector<Array> &outputs) {
    Products products;
    size_t next = 0;
    for (const Result &result : source.results) {
        products.values.push_back(outputs[next++]);
        products.scales.push_back(result.scaled ? outputs[next++].data[0] : 0);
        if (!result.scaled) continue;
        for (double &element : products.values.back().data) element *= products.scales.back();
    }
    return products;
}

Program program_with_key(const LawCase &law_case, const Rulebook &rulebook) {
    Program program = program_of(law_case, rulebook);
    program.arguments.push_back({add_value(program, key_name, {Dtype::u32, {2}})});
    return program;
}

std::vector<Array> with_key(const LawCase &law_case, std::vector<Array> inputs) {
    inputs.push_back({Dtype::u32, {2}, {0, static_cast<double>(law_case.seed.value_or(0))}});
    return inputs;
}

class ScaleLaws {
public:
    ScaleLaws(LawCheck &check, LawCase law_case)
        : check_(check), law_case_(std::move(law_case)), source_(program_with_key(law_case_, check.rulebook)),
          expected_(interpret(source_, with_key(law_case_, full_values(law_case_)), check.rulebook, Mode::real)) {}

    void check_products(const ScaleSettings &settings, Mode mode);
    void check_rescaling(const ScaleSettings &settings, uint64_t seed);

private:
    Products run(const LawCase &law_case, const ScaleSettings &settings, Mode mode) const {
        const Program scaled = check_.passes.propagate_scales(source_, check_.rulebook, settings);
        return multiply(source_, interpret(scaled, with_key(law_case, parts(law_case)), check_.rulebook, mode));
    }
    bool is_in_range(const Array &value) const {
        return std::ranges::all_of(value.data, [](double x) { return x == 0 || (std::fabs(x) < widest && std::fabs(x) > 1 / widest); });
    }
    /// Returns whether the value is exact enough to compare. This test rounds every intermediate value of a composite, whereas kernels
    /// round only what they store. In 8 bits, a variance that is small compared with the square of the mean would lose all its bits.
    bool is_comparable(const Array &value) const {
        const bool rounds_parts = !check_.rule.has_scale() && !check_.rule.is_plain();
        return is_in_range(value) && !(rounds_parts && is_float(value.dtype) && size_of(value.dtype) == 1);
    }
    bool is_rounding(const Difference &difference, const Array &value) const {
        return std::fabs(difference.got - difference.expected) <= tolerance(value) * std::fabs(difference.expected);
    }
    double tolerance(const Array &value) const {
        double bound = is_float(value.dtype) ? check_.tolerance(value.dtype) : 0;
        for (const LawInput &input : law_case_.inputs)
            if (is_float(input.data.dtype) && is_float(value.dtype)) bound = std::max(bound, check_.tolerance(input.data.dtype));
        return bound;
    }

    LawCheck &check_;
    LawCase law_case_;
    Program source_;
    std::vector<Array> expected_;
};

void ScaleLaws::check_products(const ScaleSettings &settings, Mode mode) {
    const Products got = run(law_case_, settings, mode);
    for (size_t i = 0; i < expected_.size(); i++) {
        if (mode == Mode::stored && !is_comparable(expected_[i])) continue;
        const double bound = mode == Mode::real ? real_tolerance : tolerance(expected_[i]);
        const std::string &name = source_.results[i].name;
        if (const auto difference = find_difference(got.values[i], expected_[i], bound, got.scales[i]))
            check_.fail("scale",
                        mode == Mode::real ? "data * scale must equal the value" : "data * scale must equal the value in its dtype",
                        describe(law_case_, name, expected_[i].shape, *difference) + words_of(settings));
    }
}

void ScaleLaws::check_rescaling(const ScaleSettings &settings, uint64_t seed) {
    Draw draw(seed);
    LawCase moved = law_case_;
    for (LawInput &input : moved.inputs) {
        const double power = std::ldexp(1.0, static_cast<int>(draw.integer(-3, 3)));
        if (!input.scaled) continue;
        input.scale *= power;
        for (double &element : input.data.data) element /= power;
    }
    const Products before = run(law_case_, settings, Mode::stored), after = run(moved, settings, Mode::stored);
    for (size_t i = 0; i < expected_.size(); i++)
        if (const auto difference = find_difference(after.values[i], before.values[i], 0, 0))
            check_.fail("scale", "a power of two moved from data to scale must not change the value",
                        describe(moved, source_.results[i].name, expected_[i].shape, *difference) + words_of(settings),
                        is_rounding(*difference, expected_[i]) ? declare_rounded : "");
}

} // namespace

void check_scales(LawCheck &check, const CheckCase &check_case, uint64_t seed) {
    if (check.rule.check.scaling == "storage") return;
    std::vector<Scales> kinds{Scales::powers, Scales::any, Scales::zero};
    if (!check.rule.forms_full_values()) kinds.insert(kinds.end(), {Scales::huge, Scales::tiny});
    for (Scales scales : kinds) {
        const LawCase law_case = draw_case(check.rule, check_case, scales, seed);
        if (std::ranges::none_of(law_case.inputs, &LawInput::scaled)) return;
        ScaleLaws laws(check, law_case);
        for (const ScaleSettings &settings : all_settings(check.rule)) {
            check.ran_scales(settings.strategy);
            laws.check_products(settings, Mode::real);
            laws.check_products(settings, Mode::stored);
            // Without rounding, the scales are not powers of two.
            if (scales == Scales::powers && settings.rounding != Rounding::none && check.rule.check.scaling == "exact")
                laws.check_rescaling(settings, seed);
        }
    }
}

} // namespace scalide
