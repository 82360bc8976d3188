#include "frontend/learning_rates.h"
#include "frontend/fragments.h"
#include <algorithm>
#include <cmath>
#include <numbers>

namespace scalide {

namespace {

using namespace fragments;

void check_positive(const std::string &schedule, const std::string &option, int64_t steps) {
    if (steps > 0) return;
    throw UserError({{}, schedule, option + " must be positive", std::to_string(steps), ""});
}

void check_factors(const std::string &schedule, const std::map<int64_t, double> &factors) {
    for (const auto &[boundary, factor] : factors)
        if (!(factor >= 0))
            throw UserError(
                {{}, schedule, "the factor at " + std::to_string(boundary) + " must not be negative", std::to_string(factor), ""});
}

Tensor real(const Tensor &count) { return to(count, Dtype::f32); }

/// A line or a cosine from `first` to `last`, for a part from 0 to 1 of the way.
Tensor between(bool is_cosine, double first, double last, const Tensor &part) {
    if (!is_cosine) return (last - first) * part + first;
    return last + (first - last) / 2 * (cos(std::numbers::pi * part) + 1);
}

/// Goes through values at counts, each a factor of the one before (optax.piecewise_interpolate_schedule).
Schedule piecewise_interpolation(bool is_cosine, double init_value, const std::map<int64_t, double> &boundaries_and_scales) {
    std::vector<std::pair<int64_t, double>> points{{0, init_value}};
    for (const auto &[boundary, scale] : boundaries_and_scales) points.emplace_back(boundary, points.back().second * scale);
    return [=](const Tensor &count) {
        Tensor value = scalar(points.back().second);
        for (size_t i = points.size() - 1; i > 0; i--) {
            const auto &[first, first_value] = points[i - 1];
            const auto &[last, last_value] = points[i];
            const Tensor part = real(count - first) / static_cast<double>(std::max<int64_t>(last - first, 1));
            value = where(count < last, between(is_cosine, first_value, last_value, part), value);
        }
        return value;
    };
}

} // namespace

Schedule constant_schedule(double value) { return value; }

Schedule polynomial_schedule(const PolynomialSchedule &options) {
    if (options.transition_steps <= 0) return options.init_value;
    return [=](const Tensor &count) {
        const auto steps = static_cast<int32_t>(options.transition_steps);
        const Tensor n = apply("clamp", {0, count - std::max<int64_t>(options.transition_begin, 0), steps});
        const Tensor rest = 1 - real(n) / steps;
        return (options.init_value - options.end_value) * (options.power == 1 ? rest : pow(rest, options.power)) + options.end_value;
    };
}

Schedule linear_schedule(const LinearSchedule &options) {
    return polynomial_schedule({options.init_value, options.end_value, 1, options.transition_steps, options.transition_begin});
}

Schedule exponential_decay(const ExponentialDecay &options) {
    if (options.transition_steps <= 0 || options.decay_rate == 0) return options.init_value;
    return [=](const Tensor &count) {
        const Tensor n = count - std::max<int64_t>(options.transition_begin, 0);
        Tensor exponent = real(n) / options.transition_steps;
        if (options.staircase) exponent = floor(exponent);
        const Tensor decayed = where(n <= 0, options.init_value, options.init_value * pow(options.decay_rate, exponent));
        if (!options.end_value) return decayed;
        return options.decay_rate < 1 ? max(decayed, *options.end_value) : min(decayed, *options.end_value);
    };
}

Schedule piecewise_constant_schedule(const PiecewiseConstantSchedule &options) {
    check_factors("piecewise_constant_schedule", options.boundaries_and_scales);
    if (options.boundaries_and_scales.empty()) return options.init_value;
    return [=](const Tensor &count) {
        Tensor value = scalar(options.init_value);
        for (const auto &[boundary, scale] : options.boundaries_and_scales) value = where(count < boundary, value, scale * value);
        return value;
    };
}

Schedule cosine_decay_schedule(const CosineDecaySchedule &options) {
    check_positive("cosine_decay_schedule", "decay_steps", options.decay_steps);
    return [=](const Tensor &count) {
        const auto steps = static_cast<double>(options.decay_steps);
        const Tensor cosine = 0.5 * (1 + cos(std::numbers::pi * min(real(count), steps) / steps));
        const Tensor power = options.exponent == 1 ? cosine : pow(cosine, options.exponent);
        return options.init_value * ((1 - options.alpha) * power + options.alpha);
    };
}

Schedule warmup_cosine_decay_schedule(const WarmupCosineDecaySchedule &options) {
    check_positive("warmup_cosine_decay_schedule", "decay_steps - warmup_steps", options.decay_steps - options.warmup_steps);
    const double alpha = options.peak_value == 0 ? 0 : options.end_value / options.peak_value;
    return join_schedules(
        {linear_schedule({options.init_value, options.peak_value, options.warmup_steps}),
         cosine_decay_schedule({options.peak_value, options.decay_steps - options.warmup_steps, alpha, options.exponent})},
        {options.warmup_steps});
}

Schedule linear_onecycle_schedule(const LinearOnecycleSchedule &options) {
    check_positive("linear_onecycle_schedule", "transition_steps", options.transition_steps);
    const auto steps = static_cast<double>(options.transition_steps);
    std::map<int64_t, double> factors;
    factors[static_cast<int64_t>(options.pct_start * steps)] = options.div_factor;
    factors[static_cast<int64_t>(options.pct_final * steps)] = 1 / options.div_factor;
    factors[options.transition_steps] = 1 / options.final_div_factor;
    return piecewise_interpolation(false, options.peak_value / options.div_factor, factors);
}

Schedule cosine_onecycle_schedule(const CosineOnecycleSchedule &options) {
    check_positive("cosine_onecycle_schedule", "transition_steps", options.transition_steps);
    const auto steps = static_cast<double>(options.transition_steps);
    std::map<int64_t, double> factors;
    factors[static_cast<int64_t>(options.pct_start * steps)] = options.div_factor;
    factors[options.transition_steps] = 1 / (options.div_factor * options.final_div_factor);
    return piecewise_interpolation(true, options.peak_value / options.div_factor, factors);
}

Schedule join_schedules(const std::vector<Schedule> &schedules, const std::vector<int64_t> &boundaries) {
    if (schedules.empty() || boundaries.size() + 1 != schedules.size())
        throw UserError({{},
                         "join_schedules",
                         "there must be one boundary between two schedules",
                         std::to_string(schedules.size()) + " schedules and " + std::to_string(boundaries.size()) + " boundaries",
                         ""});
    return [=](const Tensor &count) {
        const auto tensor = [](const Operand &value) { return value.is_number ? scalar(value.number) : value.tensor; };
        Tensor joined = tensor(schedules[0](count));
        for (size_t i = 0; i < boundaries.size(); i++)
            joined = where(count < boundaries[i], joined, tensor(schedules[i + 1](count - boundaries[i])));
        return joined;
    };
}

} // namespace scalide
