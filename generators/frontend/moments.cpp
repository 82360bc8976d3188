#include "frontend/fragments.h"
#include "frontend/optimizers.h"
#include "ir/words.h"
#include <algorithm>
#include <numeric>

/// Optimizers that keep averages of gradients.
namespace scalide {

namespace {

using namespace fragments;

using Updates = std::vector<Tensor>;
using Parameter = OptimizerStep::Parameter;

/// Returns decay * average + (1 - decay) * value. The average has any dtype.
Tensor averaged(const Tensor &average, double decay, const Tensor &value) { return (1 - decay) * value + decay * to(average, Dtype::f32); }

/// Returns 1 - decay^n, where n is the count of this update from 1 on.
Tensor bias(double decay, const Tensor &n) { return 1 - pow(decay, to(n, Dtype::f32)); }

/// Declares a state in the shape of a parameter.
State<Tensor> &moment(OptimizerStep &step, const std::string &name, const Parameter &parameter, std::optional<Dtype> dtype = {},
                      double initial = 0) {
    return step.add_state(name, parameter, {dtype.value_or(parameter.type.dtype), parameter.type.shape}, initializers::constant(initial));
}

/// Returns the root of the sum of squares, at least min_norm.
Tensor norm(const Tensor &x, double min_norm) { return max(sqrt(reduce("reduce_sum", square(x))), min_norm); }

Tensor root_mean_square(const Tensor &x) { return sqrt(reduce("mean", square(x))); }

std::optional<std::pair<int64_t, int64_t>> factored_axes(const Parameter &parameter, const Adafactor &options) {
    const Extents &shape = parameter.type.shape;
    if (!options.factored || shape.size() < 2) return {};
    for (const Extent &extent : shape)
        if (!extent.is_static())
            throw UserError({{}, parameter.name, "the extents must be numbers", to_string(shape), "Use a GeneratorParam as the extent"});
    std::vector<int64_t> axes(shape.size());
    std::iota(axes.begin(), axes.end(), 0);
    std::ranges::stable_sort(axes, {}, [&](int64_t axis) { return shape[axis].value(); });
    const int64_t next = axes[axes.size() - 2], largest = axes.back();
    if (shape[next].value() < options.min_dim_size_to_factor) return {};
    return std::pair(next, largest);
}

Extents without(Extents shape, int64_t axis) {
    shape.erase(shape.begin() + axis);
    return shape;
}

/// The update of one tensor with factored averages. `decay` is a scalar.
Tensor factored(OptimizerStep &step, const Parameter &parameter, const Tensor &g, const Tensor &decay, double eps,
                const std::pair<int64_t, int64_t> &axes) {
    const auto &[next, largest] = axes;
    const Tensor squares = square(g) + eps;
    const auto keep = [&](const char *name, int64_t axis) {
        const Type type{parameter.type.dtype, without(parameter.type.shape, axis)};
        State<Tensor> &state = step.add_state(name, parameter, type);
        const Tensor mean = decay * to(state, Dtype::f32) + (1 - decay) * reduce("mean", squares, {axis});
        step.assign(state, mean);
        return to(to(mean, type.dtype), Dtype::f32);
    };
    const Tensor row = keep("v_row", largest), column = keep("v_col", next);
    const int64_t of_row = next > largest ? next - 1 : next;
    const Tensor row_factor = pow(row / expand(reduce("mean", row, {of_row}), of_row), -0.5), column_factor = pow(column, -0.5);
    return g * expand(row_factor, largest) * expand(column_factor, next);
}

} // namespace

Optimizer trace(double decay, bool nesterov, std::optional<Dtype> accumulator_dtype) {
    return Optimizer([=](OptimizerStep &step, const Updates &gradients) {
        Updates updates;
        for (size_t i = 0; i < gradients.size(); i++) {
            State<Tensor> &state = moment(step, "trace", step.parameters()[i], accumulator_dtype);
            const Tensor sum = gradients[i] + decay * to(state, Dtype::f32);
            step.assign(state, sum);
            updates.push_back(nesterov ? gradients[i] + decay * sum : sum);
        }
        return updates;
    });
}

Optimizer ema(double decay, bool debias, std::optional<Dtype> accumulator_dtype) {
    return Optimizer([=](OptimizerStep &step, const Updates &gradients) {
        const Tensor correction = debias ? bias(decay, safe_increment(step.count())) : Tensor();
        Updates updates;
        for (size_t i = 0; i < gradients.size(); i++) {
            State<Tensor> &state = moment(step, "ema", step.parameters()[i], accumulator_dtype);
            const Tensor average = averaged(state, decay, gradients[i]);
            step.assign(state, average);
            updates.push_back(debias ? average / correction : average);
        }
        return updates;
    });
}

Optimizer scale_by_trust_ratio(double min_norm, double trust_coefficient, double eps) {
    return Optimizer([=](OptimizerStep &step, const Updates &gradients) {
        Updates updates;
        for (size_t i = 0; i < gradients.size(); i++) {
            const Tensor of_parameter = norm(step.parameters()[i].value, min_norm), of_update = norm(gradients[i], min_norm);
            const Tensor is_zero = logical_or(eq(of_parameter, 0), eq(of_update, 0));
            const Tensor divisor = where(is_zero, 1, eps == 0 ? of_update : of_update + eps);
            const Tensor ratio = where(is_zero, 1, trust_coefficient * of_parameter / divisor);
            updates.push_back(gradients[i] * ratio);
        }
        return updates;
    });
}

Optimizer scale_by_param_block_rms(double min_scale) {
    return Optimizer([=](OptimizerStep &step, const Updates &gradients) {
        Updates updates;
        for (size_t i = 0; i < gradients.size(); i++)
            updates.push_back(gradients[i] * max(root_mean_square(step.parameters()[i].value), min_scale));
        return updates;
    });
}

Optimizer sgd(const Sgd &options) {
    std::vector<Optimizer> parts;
    if (options.momentum) parts.push_back(trace(*options.momentum, options.nesterov, options.accumulator_dtype));
    parts.push_back(scale_by_learning_rate(options.learning_rate));
    return chain(parts);
}

Optimizer scale_by_adam(const Adam &options) {
    return Optimizer([=](OptimizerStep &step, const Updates &gradients) {
        const Tensor n = safe_increment(step.count());
        const Tensor bias1 = bias(options.b1, n), bias2 = bias(options.b2, n);
        const Tensor next_bias1 = options.nesterov ? bias(options.b1, safe_increment(n)) : Tensor();
        Updates updates;
        for (size_t i = 0; i < gradients.size(); i++) {
            const Tensor &g = gradients[i];
            State<Tensor> &mu = moment(step, "mu", step.parameters()[i], options.mu_dtype), &nu = moment(step, "nu", step.parameters()[i]);
            const Tensor first = averaged(mu, options.b1, g), second = averaged(nu, options.b2, square(g));
            step.assign(mu, first);
            step.assign(nu, second);
            const Tensor m = options.nesterov ? options.b1 * (first / next_bias1) + (1 - options.b1) * (g / bias1) : first / bias1;
            const Tensor v = second / bias2;
            updates.push_back(m / (sqrt(options.eps_root == 0 ? v : v + options.eps_root) + options.eps));
        }
        return updates;
    });
}

Optimizer adam(const Adam &options) { return chain({scale_by_adam(options), scale_by_learning_rate(options.learning_rate)}); }

Optimizer adamw(const AdamW &options) {
    return chain({scale_by_adam({.b1 = options.b1,
                                 .b2 = options.b2,
                                 .eps = options.eps,
                                 .eps_root = options.eps_root,
                                 .mu_dtype = options.mu_dtype,
                                 .nesterov = options.nesterov}),
                  add_decayed_weights(options.weight_decay, options.mask), scale_by_learning_rate(options.learning_rate)});
}

Optimizer lamb(const Lamb &options) {
    return chain({scale_by_adam({.b1 = options.b1, .b2 = options.b2, .eps = options.eps, .eps_root = options.eps_root}),
                  add_decayed_weights(options.weight_decay, options.mask), scale_by_trust_ratio(),
                  scale_by_learning_rate(options.learning_rate)});
}

Optimizer scale_by_rms(const RmsProp &options) {
    return Optimizer([=](OptimizerStep &step, const Updates &gradients) {
        const Tensor correction = options.bias_correction ? bias(options.decay, safe_increment(step.count())) : Tensor();
        const auto average = [&](const char *name, const Parameter &parameter, const Tensor &value, double initial) {
            State<Tensor> &state = moment(step, name, parameter, {}, initial);
            const Tensor new_value = averaged(state, options.decay, value);
            step.assign(state, new_value);
            return options.bias_correction ? new_value / correction : new_value;
        };
        Updates updates;
        for (size_t i = 0; i < gradients.size(); i++) {
            const Tensor &g = gradients[i];
            const Parameter &parameter = step.parameters()[i];
            const Tensor mu = options.centered ? average("mu", parameter, g, 0) : Tensor();
            Tensor nu = average("nu", parameter, square(g), options.initial_scale);
            if (options.centered) nu = nu - square(mu);
            updates.push_back(options.eps_in_sqrt ? rsqrt(nu + options.eps) * g : g / (sqrt(nu) + options.eps));
        }
        return updates;
    });
}

Optimizer rmsprop(const RmsProp &options) {
    std::vector<Optimizer> parts{scale_by_rms(options), scale_by_learning_rate(options.learning_rate)};
    if (options.momentum) parts.push_back(trace(*options.momentum, options.nesterov));
    return chain(parts);
}

Optimizer lion(const Lion &options) {
    const Optimizer signs([=](OptimizerStep &step, const Updates &gradients) {
        Updates updates;
        for (size_t i = 0; i < gradients.size(); i++) {
            State<Tensor> &mu = moment(step, "mu", step.parameters()[i], options.mu_dtype);
            updates.push_back(sign(averaged(mu, options.b1, gradients[i])));
            step.assign(mu, averaged(mu, options.b2, gradients[i]));
        }
        return updates;
    });
    return chain({signs, add_decayed_weights(options.weight_decay, options.mask), scale_by_learning_rate(options.learning_rate)});
}

Optimizer scale_by_factored_rms(const Adafactor &options) {
    return Optimizer([=](OptimizerStep &step, const Updates &gradients) {
        const Tensor n = to(step.count() - options.decay_offset, Dtype::f32) + 1;
        const Tensor decay = 1 - pow(n, -options.decay_rate);
        Updates updates;
        for (size_t i = 0; i < gradients.size(); i++) {
            const Tensor &g = gradients[i];
            const Parameter &parameter = step.parameters()[i];
            if (const auto axes = factored_axes(parameter, options)) {
                updates.push_back(factored(step, parameter, g, decay, options.eps, *axes));
                continue;
            }
            State<Tensor> &v = moment(step, "v", parameter);
            const Tensor average = decay * to(v, Dtype::f32) + (1 - decay) * (square(g) + options.eps);
            step.assign(v, average);
            updates.push_back(g * pow(average, -0.5));
        }
        return updates;
    });
}

Optimizer adafactor(const Adafactor &options) {
    std::vector<Optimizer> parts{scale_by_factored_rms(options)};
    if (options.clipping_threshold) parts.push_back(clip_by_block_rms(*options.clipping_threshold));
    if (options.learning_rate) parts.push_back(scale(*options.learning_rate));
    if (options.multiply_by_parameter_scale) parts.push_back(scale_by_param_block_rms());
    if (options.momentum) parts.push_back(ema(*options.momentum, false, options.dtype_momentum));
    if (options.weight_decay_rate) parts.push_back(add_decayed_weights(*options.weight_decay_rate, options.weight_decay_mask));
    parts.push_back(scale(-1));
    return chain(parts);
}

} // namespace scalide
