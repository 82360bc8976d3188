#include "support/fragments/random_optimizer.h"
#include "frontend/loss_scaling.h"
#include "frontend/optimizers.h"
#include "support/fragments/fragment_run.h"
#include <cmath>
#include <memory>
#include <random>

namespace scalide {

namespace {

constexpr int features = 6;

class Draft {
public:
    Draft(unsigned seed, int64_t batch) : random_(seed), batch_(batch) {}

    /// A step that trains a network with one to three layers. Its results are the loss and the states.
    void describe() {
        const Input<Tensor> x("x", f32, {batch_, features}), target("target", f32, {batch_, 1});
        Tensor h = x;
        int width = features;
        const int layers = 1 + below(3);
        for (int i = 0; i < layers; i++) {
            const int next = i + 1 == layers ? 1 : 1 + below(8);
            h = activated(layer(h, width, next));
            width = next;
        }
        const Tensor error = h - target;
        const Tensor loss = apply("mean", {error * error}, {});
        std::vector<State<Tensor> *> parameters;
        std::vector<Tensor> values;
        for (const auto &state : states_) {
            parameters.push_back(state.get());
            values.push_back(*state);
        }
        LossScaler scaler = draw_scaler();
        const ScaledGradients made = scaler.value_and_grad(loss, values);
        chain({draw_clip(), draw_optimizer()}).apply_if(made.finite, made.gradients, parameters);
        Output<Tensor> result("loss", made.value.dtype(), {});
        result = made.value;
    }

private:
    int below(int count) { return static_cast<int>(random_() % static_cast<unsigned>(count)); }
    double one_of(std::initializer_list<double> numbers) { return numbers.begin()[below(static_cast<int>(numbers.size()))]; }

    Tensor layer(const Tensor &x, int from, int to) {
        const std::string name = "layer" + std::to_string(states_.size());
        const Tensor w = state(name + ".w", {from, to}, 1 / std::sqrt(double(from)));
        const Tensor product = dot(x, w);
        return below(2) == 0 ? product : product + state(name + ".b", {to}, 0.5);
    }
    Tensor state(const std::string &name, const Dimensions &shape, double deviation) {
        states_.push_back(std::make_unique<State<Tensor>>(name, f32, shape, initializers::normal(deviation)));
        return *states_.back();
    }
    Tensor activated(const Tensor &x) {
        static const char *operators[] = {"tanh", "relu", "gelu", "silu", "logistic"};
        const int drawn = below(6);
        return drawn == 5 ? x : apply(operators[drawn], {x}, {});
    }
    LossScaler draw_scaler() {
        const double first = one_of({1, 1024, 0x1p24, 0x1p100});
        switch (below(5)) {
        case 0: return dynamic_scaler({.patience = 2, .scaler = first, .redo_on_nan = below(2)});
        case 1: return flax_dynamic_scale({.growth_interval = 2, .scale = first});
        case 2: return dynamic_loss_scale({.loss_scale = first, .period = 2});
        case 3: return static_loss_scale(1024);
        default: return no_op_loss_scale();
        }
    }
    Optimizer draw_clip() {
        switch (below(4)) {
        case 0: return clip(0.01);
        case 1: return clip_by_block_rms(0.1);
        case 2: return clip_by_global_norm(100);
        default: return clip_by_global_norm(one_of({0.01, 1}));
        }
    }
    Optimizer draw_optimizer() {
        const Schedule rate =
            below(2) == 0 ? Schedule(0.01)
                          : warmup_cosine_decay_schedule({.init_value = 0, .peak_value = 0.01, .warmup_steps = 2, .decay_steps = 9});
        switch (below(8)) {
        case 0: return sgd({.learning_rate = rate, .momentum = 0.9, .nesterov = below(2) == 0});
        case 1: return adam({.learning_rate = rate});
        case 2:
            return adamw({.learning_rate = rate, .weight_decay = 0.1, .mask = [](const std::string &, const Type &type) {
                              return type.rank() > 1;
                          }});
        case 3: return rmsprop({.learning_rate = rate, .momentum = 0.5});
        case 4: return lion({.learning_rate = rate});
        case 5: return lamb({.learning_rate = rate, .weight_decay = 0.1});
        case 6: return adafactor({.learning_rate = rate, .min_dim_size_to_factor = 3});
        default: return multi_steps(adam({.learning_rate = rate}), {.every_k = 2});
        }
    }

    std::mt19937 random_;
    int64_t batch_;
    std::vector<std::unique_ptr<State<Tensor>>> states_;
};

} // namespace

DrawnStep random_optimizer_step(unsigned seed, int64_t batch) {
    const FragmentRun run([=] { Draft(seed, batch).describe(); });
    return {run.program(), run.states};
}

} // namespace scalide
