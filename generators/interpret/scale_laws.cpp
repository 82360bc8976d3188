#include "interpret/law_check.h"
#include <algorithm>
#include <cmath>

namespace scalide {

namespace {

constexpr double real_tolerance = 1e-12;
/// Beyond this neither f32 data times a clamped scale nor its reciprocal has room.
constexpr double widest = 0x1p220;
/// An argument beside the operands, for scales that are rounded at random; no operand has such a name.
const std::string key_name = "law_key";

std::vector<ScaleSettings> all_settings() {
    std::vector<ScaleSettings> settings;
    for (const char *strategy : {"l2", "max"})
        for (Rounding rounding : {Rounding::down, Rounding::up, Rounding::nearest, Rounding::none})
            settings.push_back({strategy, rounding});
    settings.push_back({"l2", Rounding::stochastic, key_name}); // the strategy makes no difference to how it rounds
    return settings;
}

std::string words_of(const ScaleSettings &settings) {
    return ", strategy " + settings.strategy + ", rounding " + std::string(to_string(settings.rounding));
}

/// The results of a propagated program as numbers, with their scales (0 for plain ones).
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

/// Names in an expression that stand for operands as full values.
bool forms_full_values(const Rule &rule, const Expression &expression) {
    if (expression->kind == ExpressionNode::Kind::member) return false;
    if (expression->kind == ExpressionNode::Kind::name) {
        if (rule.operand_index(expression->text) >= 0) return true;
        const auto let = std::ranges::find(rule.lets, expression->text, &std::pair<std::string, Expression>::first);
        return let != rule.lets.end() && forms_full_values(rule, let->second);
    }
    return std::ranges::any_of(expression->operands, [&](const Expression &operand) { return forms_full_values(rule, operand); });
}

/// True when the rule says all its results by data and scale alone: then scales of any size must do.
bool keeps_apart(const Rule &rule) {
    const std::vector<Expression> &said = rule.is_plain() ? rule.on_plain : rule.data;
    return said.size() == rule.results.size() &&
           std::ranges::none_of(said, [&](const Expression &data) { return data == nullptr || forms_full_values(rule, data); });
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
        if (mode == Mode::stored && !is_in_range(expected_[i])) continue;
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
                        describe(moved, source_.results[i].name, expected_[i].shape, *difference) + words_of(settings));
}

} // namespace

void check_scales(LawCheck &check, const CheckCase &check_case, uint64_t seed) {
    if (check.rule.check.scaling == "storage") return;
    std::vector<Scales> kinds{Scales::powers, Scales::any, Scales::zero};
    if (keeps_apart(check.rule)) kinds.insert(kinds.end(), {Scales::huge, Scales::tiny});
    for (Scales scales : kinds) {
        const LawCase law_case = draw_case(check.rule, check_case, scales, seed);
        if (std::ranges::none_of(law_case.inputs, &LawInput::scaled)) return;
        ScaleLaws laws(check, law_case);
        for (const ScaleSettings &settings : all_settings()) {
            laws.check_products(settings, Mode::real);
            laws.check_products(settings, Mode::stored);
            // Without rounding the scales themselves are no powers of two.
            if (scales == Scales::powers && settings.rounding != Rounding::none && check.rule.check.scaling == "exact")
                laws.check_rescaling(settings, seed);
        }
    }
}

} // namespace scalide
