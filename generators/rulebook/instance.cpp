#include "rulebook/instance.h"
#include "rulebook/elaborate.h"
#include "rulebook/static_value.h"
#include "rulebook/unplaced.h"
#include <algorithm>
#include <cmath>

namespace scalide {

namespace {

struct RoundingName {
    Rounding rounding;
    std::string_view word, op;
};

constexpr RoundingName roundings[] = {
    {Rounding::down, "down", "pow2_down"},
    {Rounding::up, "up", "pow2_up"},
    {Rounding::nearest, "nearest", "pow2_nearest"},
    {Rounding::none, "none", ""},
    {Rounding::stochastic, "stochastic", "pow2_stochastic"},
};

} // namespace

std::string_view to_string(Rounding rounding) { return std::ranges::find(roundings, rounding, &RoundingName::rounding)->word; }

std::optional<Rounding> parse_rounding(std::string_view word) {
    const auto *found = std::ranges::find(roundings, word, &RoundingName::word);
    return found == std::end(roundings) ? std::nullopt : std::optional(found->rounding);
}

std::string_view power_of_two_operator(Rounding rounding) { return std::ranges::find(roundings, rounding, &RoundingName::rounding)->op; }

struct Instance::State {
    Elaboration elaboration;
    std::vector<Type> result_types;
    /// By result: a scale before and after clamping. Absent if the scale was not clamped.
    struct Clamped {
        Term raw, kept;
    };
    std::map<int, std::optional<Clamped>> clamped;

    const Rule &rule() const { return elaboration.rule(); }

    /// Runs `body` and adds this operator and the place of the node to errors. If the node has no place in a user's source, errors name
    /// the field of the rule.
    template<typename Body>
    auto placed(const std::string &field, const Body &body) -> decltype(body()) {
        try {
            return body();
        } catch (const UserError &error) {
            const Location &where = elaboration.where();
            if (&where == &rule().location) rethrow_placed(error, where, rule().op + "." + field);
            rethrow_inside(error, where, rule().op, field);
        }
    }

    std::vector<ValueId> base_value() {
        std::vector<ValueId> operands;
        for (size_t i = 0; i < elaboration.operands().size(); i++) operands.push_back(elaboration.full(static_cast<int>(i)));
        return elaboration.builder().add(rule().op, operands, elaboration.attributes());
    }

    Term value(int result) {
        if (rule().is_base) return make_term(elaboration.builder().program(), base_value().at(result));
        if (!rule().results[0].each) return elaboration.elaborate(rule().value[result], Place::value);
        const Term all = elaboration.elaborate(rule().value[0], Place::value);
        const size_t count = all.cases ? all.cases->size() : 1;
        if (count != result_types.size()) fail_unplaced("the value must have one array for each result", std::to_string(count));
        return all.cases->at(result);
    }

    Term call(const std::string &op, std::vector<Term> arguments, Place place) { return elaboration.call(op, std::move(arguments), place); }

    /// Returns a node for `raw`, clamped.
    ValueId stored_scale(int result, const Term &raw) {
        Builder &builder = elaboration.builder();
        const bool is_stored = !raw.constant && builder.type(raw.node) == Type{Dtype::f32, {}};
        clamped[result] = std::nullopt;
        if (is_stored) return raw.node; // the stored scale of another value, unchanged
        const Term kept = call("clamp_scale", {raw}, Place::scale);
        clamped[result] = Clamped{raw, kept};
        return elaboration.fit(kept, {Dtype::f32, {}});
    }

    /// Returns the factor that clamping removed from a scale. The data is multiplied by it.
    Term taken_away(const Clamped &scale) {
        const Term is_zero = call("eq", {scale.raw, make_term(Attribute(0))}, Place::scale);
        const Term ratio = call("div", {scale.raw, scale.kept}, Place::scale);
        return call("select", {is_zero, make_term(Attribute(1)), ratio}, Place::scale);
    }
};

Instance::Instance(Builder &builder, const Rule &rule, std::vector<ScaledValue> operands, Attributes attributes, ScaleSettings settings) {
    std::vector<Type> types;
    for (const ScaledValue &operand : operands) types.push_back(builder.type(operand.is_scaled() ? operand.data : operand.value));
    std::vector<Type> results = infer_result_types(rule, types, attributes, place_of(builder, rule));
    state_ = std::make_unique<State>(
        State{Elaboration(builder, rule, std::move(operands), std::move(attributes), std::move(settings)), std::move(results), {}});
}

Instance::Instance(Instance &&) = default;
Instance::~Instance() = default;

std::vector<ValueId> Instance::value() {
    return state_->placed("value", [&] {
        if (state_->rule().is_base) return state_->base_value();
        std::vector<ValueId> results;
        for (size_t i = 0; i < state_->result_types.size(); i++)
            results.push_back(state_->elaboration.fit(state_->value(static_cast<int>(i)), state_->result_types[i]));
        return results;
    });
}

ValueId Instance::scale(int result) {
    return state_->placed("scale", [&] {
        const std::vector<Expression> &scales = state_->rule().scale_of(state_->elaboration.settings().strategy);
        const Term raw = state_->elaboration.elaborate(scales.at(result), Place::scale);
        return state_->stored_scale(result, raw);
    });
}

ValueId Instance::data(int result, ValueId scale) {
    return state_->placed("data", [&] {
        if (!state_->clamped.contains(result)) this->scale(result);
        Elaboration &elaboration = state_->elaboration;
        const std::vector<Expression> &rules = state_->rule().data;
        const Expression expression = rules.empty() ? nullptr : rules[result];
        const Term stored = make_term(elaboration.builder().program(), scale);
        elaboration.define("scale", stored);
        Term data = expression ? elaboration.elaborate(expression, Place::value)
                               : state_->call("ratio", {state_->value(result), stored}, Place::value);
        // Data that is computed from the stored scale needs no correction.
        const std::optional<State::Clamped> &clamped = state_->clamped[result];
        if (clamped && expression && !elaboration.mentions(expression, "scale")) {
            const Term ratio = state_->taken_away(*clamped);
            const bool is_one = ratio.constant && to_number(*ratio.constant) == 1;
            const Term narrow =
                ratio.constant ? ratio : make_term(elaboration.builder().program(), elaboration.fit(ratio, {Dtype::f32, {}}));
            if (!is_one) data = state_->call("mul", {data, narrow}, Place::value);
        }
        return elaboration.fit(data, state_->result_types[result]);
    });
}

ValueId Instance::plain(int result) {
    return state_->placed("on_plain", [&] {
        const std::vector<Expression> &rules = state_->rule().on_plain;
        const Expression expression = rules.empty() ? nullptr : rules[result];
        const Term value = expression ? state_->elaboration.elaborate(expression, Place::value) : state_->value(result);
        return state_->elaboration.fit(value, state_->result_types[result]);
    });
}

ValueId Instance::gradient(int operand, const std::vector<ValueId> &outs, const std::vector<ValueId> &cts) {
    const Rule &rule = state_->rule();
    const int index = std::min<int>(operand, static_cast<int>(rule.operands.size()) - 1);
    const OperandSpec &spec = rule.operands[index];
    const auto expression = rule.gradient.find(spec.name);
    if (expression == rule.gradient.end()) return -1;
    return state_->placed("grad." + spec.name, [&] {
        Elaboration &elaboration = state_->elaboration;
        const Program &program = elaboration.builder().program();
        if (expression->second == nullptr)
            fail_unplaced("this operand has no gradient, but the loss depends on it: '" + program.value_name(elaboration.full(operand)) +
                              "'",
                          "", "Apply stop_gradient to the operand");
        for (size_t i = 0; i < rule.results.size(); i++) {
            const std::string &name = rule.results[i].name;
            const Term ct = cts[i] < 0 ? make_term(Attribute(0)) : make_term(program, cts[i]);
            elaboration.define(name, make_term(program, outs[i]));
            elaboration.define("ct." + name, ct);
            if (rule.results.size() == 1) elaboration.define("ct", ct);
        }
        if (spec.variadic) elaboration.choose_case(operand - index);
        const Term gradient = elaboration.elaborate(expression->second, Place::value);
        elaboration.choose_case(std::nullopt);
        const bool is_zero = gradient.constant && to_number(*gradient.constant) == 0;
        return is_zero ? -1 : elaboration.fit(gradient, program.type(elaboration.full(operand)));
    });
}

} // namespace scalide
