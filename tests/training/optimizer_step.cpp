// Steps of optimizers of the C++ DSL: updates for given gradients, and a network with a loss scaler.
#include <scalide/loss_scaling.h>
#include <scalide/optimizers.h>

using namespace scalide;

namespace {

constexpr double rate = 0.01;

/// Matrices decay.
bool is_matrix(const std::string &, const Type &type) { return type.rank() > 1; }

const std::map<std::string, std::function<Optimizer()>> optimizers{
    {"adam_bf16", [] { return adam({.learning_rate = rate, .mu_dtype = bf16}); }},
    {"adamw_mask", [] { return adamw({.learning_rate = rate, .weight_decay = 0.1, .mask = is_matrix}); }},
    {"lamb", [] { return lamb({.learning_rate = rate, .weight_decay = 0.1}); }},
    {"rmsprop_momentum", [] { return rmsprop({.learning_rate = rate, .momentum = 0.9, .nesterov = true}); }},
    {"rmsprop_centered",
     [] { return rmsprop({.learning_rate = rate, .initial_scale = 1, .eps_in_sqrt = false, .centered = true, .bias_correction = true}); }},
    {"adafactor",
     [] {
         return adafactor({.learning_rate = rate,
                           .min_dim_size_to_factor = 3,
                           .momentum = 0.9,
                           .weight_decay_rate = 0.01,
                           .weight_decay_mask = is_matrix});
     }},
    {"ema",
     [] {
         return chain({clip(0.5), ema(0.9), scale(-rate)});
     }},
    {"block_rms",
     [] {
         return chain({clip_by_block_rms(0.5), scale_by_param_block_rms(), scale_by_learning_rate(rate)});
     }},
    {"muon", [] { return muon({.learning_rate = rate, .weight_decay = 0.1}); }},
    {"muon_adaptive", [] { return muon({.learning_rate = rate, .nesterov = false, .adaptive = true, .consistent_rms = 0.2}); }},
    {"multi_steps", [] { return multi_steps(adam({.learning_rate = rate}), {.every_k = 3}); }},
    {"clipped_schedule",
     [] {
         return chain({clip_by_global_norm(1), adamw({.learning_rate = warmup_cosine_decay_schedule(
                                                          {.init_value = 0, .peak_value = rate, .warmup_steps = 4, .decay_steps = 12}),
                                                      .nesterov = true})});
     }},
    {"shampoo",
     [] {
         return shampoo({.learning_rate = rate,
                         .block_size = 4,
                         .weight_decay = 0.01,
                         .start_preconditioning_step = 2,
                         .graft_type = Grafting::rmsprop});
     }},
    {"shampoo_quantized",
     [] {
         return shampoo({.learning_rate = rate,
                         .block_size = 4,
                         .weight_decay = 0.01,
                         .start_preconditioning_step = 2,
                         .graft_type = Grafting::rmsprop,
                         .statistics_dtype = i16,
                         .momentum_dtype = i8});
     }},
    {"shampoo_sgd", [] { return shampoo({.learning_rate = rate, .beta2 = 1, .start_preconditioning_step = 0, .nesterov = false}); }},
};

} // namespace

/// One update of each parameter.
class OptimizerUpdate : public Generator<OptimizerUpdate> {
public:
    GeneratorParam<std::string> optimizer{"optimizer", "lamb"};
    Input<Tensor> w_gradient{"gradient.w", f32, {6, 4}}, b_gradient{"gradient.b", f32, {4}}, k_gradient{"gradient.k", f32, {2, 3, 5}};
    State<Tensor> w{"w", f32, {6, 4}}, b{"b", f32, {4}}, k{"k", f32, {2, 3, 5}};

    void generate() override { optimizers.at(optimizer)().apply({w_gradient, b_gradient, k_gradient}, {&w, &b, &k}, "optimizer"); }
};
SCALIDE_REGISTER_GENERATOR(OptimizerUpdate, optimizer_update)
SCALIDE_REGISTER_INITIAL_STATE(OptimizerUpdate, optimizer_update_state)

/// A network that trains with AdamW, clipping and a loss scaler.
class ScaledStep : public Generator<ScaledStep> {
public:
    GeneratorParam<int> batch{"batch", 65};
    Input<Tensor> x{"x", f32, {batch, 16}}, y{"y", f32, {batch, 4}};
    Dense first{"first", 32, {.activation = "relu"}}, last{"last", 4};
    LossScaler scaler = flax_dynamic_scale({.growth_interval = 5, .scale = 1024});
    Output<Tensor> loss{"loss", f32, {}}, finite{"finite", boolean, {}};

    void generate() override {
        const Tensor error = mean(square(last(first(x)) - y));
        const std::vector<State<Tensor> *> parameters = states();
        const auto [is_finite, value, gradients] = scaler.value_and_grad(error, values_of(parameters));
        loss = value;
        finite = is_finite;
        const Optimizer optimizer = chain({clip_by_global_norm(1), adamw({.learning_rate = 0.01, .weight_decay = 0.01})});
        optimizer.apply_if(is_finite, gradients, parameters);
    }
};
SCALIDE_REGISTER_GENERATOR(ScaledStep, scaled_step)
SCALIDE_REGISTER_INITIAL_STATE(ScaledStep, scaled_step_state)
