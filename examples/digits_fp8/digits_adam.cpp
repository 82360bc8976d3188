// A digit classifier: a training step with Adam, the first values of its state, and a prediction. Nothing here says in which formats.
#include <scalide/generator.h>

using namespace scalide;

// The network of both programs. Its states have the same names in both, so the prediction reads the arrays that the training updates.
struct Network {
    Dense first{"first", 128, {.activation = "relu"}}, second{"second", 128, {.activation = "relu"}}, last{"last", 10};

    Tensor operator()(const Tensor &images) { return last(second(first(images)).named("features")); }
};

class DigitsAdam : public Generator<DigitsAdam> {
public:
    // The gradient of a kernel is a sum over the batch. f8_block scales blocks of 128 terms, so the batch is a number.
    GeneratorParam<int> batch{"batch", 128};
    GeneratorParam<double> rate{"rate", 0.002}, decay1{"decay1", 0.9}, decay2{"decay2", 0.999}, epsilon{"epsilon", 1e-8};
    Input<Tensor> images{"images", f32, {batch, 64}};
    Input<Tensor> labels{"labels", i32, {batch}};
    Output<Tensor> loss{"loss", f32, {}};
    Network network;

    void generate() override {
        const Tensor logits = network(images);
        loss = mean(softmax_cross_entropy(logits, labels));
        const std::vector<State<Tensor> *> parameters = states();
        std::vector<Tensor> values;
        for (const State<Tensor> *parameter : parameters) values.push_back(*parameter);
        values.push_back(logits);
        const std::vector<Tensor> gradients = grad(loss, values);
        gradients.back().named("logits_gradient");
        State<Tensor> &steps = add_state("steps", f32, {}, initializers::zeros());
        steps = steps + 1;
        for (size_t i = 0; i < parameters.size(); i++) {
            const Dimensions shape(values[i].shape().begin(), values[i].shape().end());
            State<Tensor> &m = add_state("m." + std::to_string(i), f32, shape, initializers::zeros());
            State<Tensor> &v = add_state("v." + std::to_string(i), f32, shape, initializers::zeros());
            m = decay1 * m + (1 - decay1) * gradients[i];
            v = decay2 * v + (1 - decay2) * square(gradients[i]);
            const Tensor unbiased_m = m / (1 - pow(decay1, steps)), unbiased_v = v / (1 - pow(decay2, steps));
            *parameters[i] = values[i] - rate * unbiased_m / (sqrt(unbiased_v) + epsilon);
        }
    }
};
SCALIDE_REGISTER_GENERATOR(DigitsAdam, digits_adam)
SCALIDE_REGISTER_INITIAL_STATE(DigitsAdam, digits_state)

class DigitsPredict : public Generator<DigitsPredict> {
public:
    Input<Tensor> images{"images", f32, {"b", 64}};
    Output<Tensor> prediction{"prediction", i32, {"b"}};
    Network network;

    void generate() override { prediction = argmax(network(images), 1); }
};
SCALIDE_REGISTER_GENERATOR(DigitsPredict, digits_predict)
