#include "frontend/loss_scaling.h"
#include "frontend/fragments.h"
#include "frontend/tracer.h"
#include "ir/words.h"
#include <limits>

namespace scalide {

namespace {

using namespace fragments;

/// Converts a scale. A scale that is too large for the dtype becomes infinite, so that the step is not finite.
Tensor converted_scale(const Tensor &scale, Dtype dtype) {
    if (scale.dtype() == dtype) return scale;
    return apply("convert_element_type", {scale}, {{"dtype", std::string(to_string(dtype))}, {"overflow", "format"}});
}

/// Returns the tensors of one attempt if it was the first finite one, else those of the next.
ScaledGradients first_finite(const ScaledGradients &first, const ScaledGradients &next) {
    ScaledGradients chosen{logical_or(first.finite, next.finite), where(first.finite, first.value, next.value), {}};
    for (size_t i = 0; i < first.gradients.size(); i++)
        chosen.gradients.push_back(where(first.finite, first.gradients[i], next.gradients[i]));
    return chosen;
}

} // namespace

Tensor all_finite(const std::vector<Tensor> &tensors, const std::source_location &where) {
    return at(where, [&] {
        Tensor all;
        for (const Tensor &tensor : tensors) {
            if (!is_float(tensor.dtype())) continue;
            const Tensor finite = reduce("reduce_and", apply("is_finite", {tensor}));
            all = all.is_assigned() ? logical_and(all, finite) : finite;
        }
        return all.is_assigned() ? all : scalar(1, Dtype::boolean);
    });
}

std::vector<Tensor> select_tree(const Tensor &condition, const std::vector<Tensor> &yes, const std::vector<Tensor> &no,
                                const std::source_location &where) {
    return at(where, [&] {
        if (yes.size() != no.size())
            throw UserError({{},
                             "select_tree",
                             "there must be as many tensors for true as for false",
                             std::to_string(yes.size()) + " and " + std::to_string(no.size()),
                             ""});
        std::vector<Tensor> selected;
        for (size_t i = 0; i < yes.size(); i++) selected.push_back(fragments::where(condition, yes[i], no[i]));
        return selected;
    });
}

void LossScaler::declare() {
    if (!states_.empty()) return;
    for (const LossScaleRule::Scalar &each : rule_.state)
        states_.push_back(&add_state(name_ + "." + each.name, each.dtype, {}, initializers::constant(each.initial)));
}

LossScaler::Values LossScaler::values() {
    declare();
    Values values;
    for (const State<Tensor> *state : states_) values.emplace_back(state->value());
    return values;
}

Tensor LossScaler::scale_of(const Values &state) const { return state.empty() ? fragments::scalar(rule_.fixed_scale) : state[0]; }

Tensor LossScaler::scaled(const Tensor &x, const Values &state) const {
    if (state.empty() && rule_.fixed_scale == 1) return x;
    if (rule_.scaled_in == ScaleDtype::f32) return to(x, Dtype::f32) * scale_of(state);
    return x * converted_scale(scale_of(state), x.dtype());
}

Tensor LossScaler::unscaled(const Tensor &x, const Values &state) const {
    if (state.empty() && rule_.fixed_scale == 1) return x;
    const Tensor scale = rule_.unscales_by_product ? 1 / scale_of(state) : scale_of(state);
    const Tensor wide = rule_.unscaled_in == ScaleDtype::f32 ? to(x, Dtype::f32) : x;
    const Tensor factor = converted_scale(scale, wide.dtype());
    return rule_.unscales_by_product ? wide * factor : wide / factor;
}

ScaledGradients LossScaler::attempt(const Tensor &loss, const std::vector<Tensor> &parameters, const std::vector<Tensor> &aux,
                                    bool tests_value, const Values &state) const {
    const Tensor scaled_loss = scaled(loss, state);
    ScaledGradients results{{}, unscaled(scaled_loss, state), scalide::grad(scaled_loss, parameters)};
    for (Tensor &gradient : results.gradients) gradient = unscaled(gradient, state);
    std::vector<Tensor> tested = results.gradients;
    if (rule_.tests_value_and_aux) tested.insert(tested.end(), aux.begin(), aux.end());
    if (rule_.tests_value_and_aux && tests_value) tested.push_back(results.value);
    results.finite = all_finite(tested);
    return results;
}

ScaledGradients LossScaler::attempts(const Tensor &loss, const std::vector<Tensor> &parameters, const std::vector<Tensor> &aux,
                                     bool tests_value) {
    if (!is_float(loss.dtype()) || loss.rank() != 0)
        throw UserError({{}, name_, "the loss must be a float scalar", to_string(Type{loss.dtype(), loss.shape()}), "Use mean()"});
    const Scope scope(name_);
    Values state = values();
    ScaledGradients results = attempt(loss, parameters, aux, tests_value, state);
    if (rule_.adjust) state = rule_.adjust(state, results.finite);
    for (int64_t i = 0; i < rule_.redo_on_nan; i++) {
        const ScaledGradients next = attempt(loss, parameters, aux, tests_value, state);
        state = select_tree(results.finite, state, rule_.adjust(state, next.finite));
        results = first_finite(results, next);
    }
    assign(state);
    return results;
}

void LossScaler::assign(const Values &state) {
    for (size_t i = 0; i < state.size(); i++) *states_[i] = state[i];
}

ScaledGradients LossScaler::value_and_grad(const Tensor &loss, const std::vector<Tensor> &parameters, const std::vector<Tensor> &aux,
                                           const std::source_location &where) {
    return at(where, [&] { return attempts(loss, parameters, aux, true); });
}

ScaledGradients LossScaler::grad(const Tensor &loss, const std::vector<Tensor> &parameters, const std::vector<Tensor> &aux,
                                 const std::source_location &where) {
    return at(where, [&] { return attempts(loss, parameters, aux, false); });
}

Tensor LossScaler::loss_scale(const std::source_location &where) {
    return at(where, [&] { return scale_of(values()); });
}

Tensor LossScaler::scale(const Tensor &x, const std::source_location &where) {
    return at(where, [&] { return scaled(x, values()); });
}

std::vector<Tensor> LossScaler::unscale(const std::vector<Tensor> &tensors, const std::source_location &where) {
    return at(where, [&] {
        const Values state = values();
        std::vector<Tensor> results;
        for (const Tensor &tensor : tensors) results.push_back(unscaled(tensor, state));
        return results;
    });
}

void LossScaler::adjust(const Tensor &finite, const std::source_location &where) {
    at(where, [&] {
        const Values state = values();
        if (rule_.adjust) assign(rule_.adjust(state, finite));
    });
}

LossScaler dynamic_scaler(const DynamicScalerState &options, const std::string &name) {
    LossScaleRule rule;
    rule.state = {{"scaler", Dtype::f32, options.scaler}, {"count", Dtype::i32, 0}, {"total_resets", Dtype::i32, 0}};
    rule.tests_value_and_aux = true;
    rule.redo_on_nan = options.redo_on_nan;
    rule.adjust = [=](const std::vector<Tensor> &state, const Tensor &finite) {
        const auto &scale = state[0], &count = state[1], &resets = state[2];
        const Tensor grows = count >= options.patience;
        const Tensor larger = where(grows, scale * options.adjust_factor, scale);
        return std::vector<Tensor>{where(finite, larger, scale / options.adjust_factor),
                                   where(logical_or(grows, logical_not(finite)), 0, count + 1), where(finite, resets, resets + 1)};
    };
    return LossScaler(rule, name);
}

LossScaler flax_dynamic_scale(const FlaxDynamicScale &options, const std::string &name) {
    LossScaleRule rule;
    rule.state = {{"scale", Dtype::f32, options.scale}, {"fin_steps", Dtype::i32, 0}};
    rule.scaled_in = ScaleDtype::f32;
    rule.adjust = [=](const std::vector<Tensor> &state, const Tensor &finite) {
        const auto &scale = state[0], &steps = state[1];
        const Tensor grows = eq(steps, options.growth_interval);
        const Tensor larger = where(grows, min(scale * options.growth_factor, std::numeric_limits<float>::max()), scale);
        const Tensor smaller = scale * options.backoff_factor;
        return std::vector<Tensor>{where(finite, larger, options.minimum_scale ? max(smaller, *options.minimum_scale) : smaller),
                                   where(logical_or(grows, logical_not(finite)), 0, steps + 1)};
    };
    return LossScaler(rule, name);
}

LossScaler dynamic_loss_scale(const DynamicLossScale &options, const std::string &name) {
    LossScaleRule rule;
    rule.state = {{"loss_scale", Dtype::f32, options.loss_scale}, {"counter", Dtype::i32, 0}};
    rule.unscaled_in = ScaleDtype::own;
    rule.unscales_by_product = true;
    rule.adjust = [=](const std::vector<Tensor> &state, const Tensor &finite) {
        const auto &scale = state[0], &counter = state[1];
        const Tensor is_last = eq(counter, options.period - 1), product = scale * options.factor;
        const Tensor larger = where(logical_and(is_last, apply("is_finite", {product})), product, scale);
        return std::vector<Tensor>{where(finite, larger, max(scale / options.factor, options.min_loss_scale)),
                                   where(logical_or(is_last, logical_not(finite)), 0, counter + 1)};
    };
    return LossScaler(rule, name);
}

LossScaler static_loss_scale(double loss_scale) {
    LossScaleRule rule;
    rule.fixed_scale = loss_scale;
    rule.unscaled_in = ScaleDtype::own;
    rule.unscales_by_product = true;
    return LossScaler(rule, "loss_scale");
}

LossScaler no_op_loss_scale() { return static_loss_scale(1); }

} // namespace scalide
