// The training step of examples/char_lm, with all_reduce of its gradients and its loss. With ranks=false it is the same step for one
// process.
#include "../../../examples/char_lm/char_lm.cpp"

class CharLmRanks : public Generator<CharLmRanks> {
public:
    GeneratorParam<int> batch{"batch", 8};
    GeneratorParam<bool> ranks{"ranks", true};
    Model model;
    Input<Tensor> ids{"ids", i32, {batch, model.length.value() + 1}};
    Output<Tensor> loss{"loss", f32, {}};

    void generate() override {
        const Tensor value = mean_loss(model, ids);
        std::vector<State<Tensor> *> parameters;
        for (State<Tensor> *state : states())
            if (is_float(state->dtype())) parameters.push_back(state);
        std::vector<Tensor> gradients = grad(value, values_of(parameters));
        loss = value;
        if (ranks) {
            const RankGroup data("data");
            for (Tensor &gradient : gradients) gradient = all_reduce_mean(gradient, data);
            loss = all_reduce_mean(value, data);
        }
        const auto is_matrix = [](const std::string &, const Type &type) { return type.shape.size() > 1; };
        const Optimizer optimizer = chain({clip_by_global_norm(1), adamw({.learning_rate = 1e-3, .weight_decay = 0.1, .mask = is_matrix})});
        optimizer.apply(gradients, parameters);
    }
};
SCALIDE_REGISTER_GENERATOR(CharLmRanks, char_lm_ranks)
