// One training step of a digit classifier: softmax cross-entropy and stochastic gradient descent. Nothing here says in which numbers.
#include <scalide/generator.h>

using namespace scalide;

class DigitsStep : public Generator<DigitsStep> {
public:
    GeneratorParam<int> pixels{"pixels", 64}, hidden{"hidden", 128}, classes{"classes", 10};

    Input<Tensor> images{"images", f32, {"b", pixels}};
    Input<Tensor> labels{"labels", i32, {"b"}};
    Input<Tensor> rate{"rate", f32, {}};
    Input<Tensor> loss_factor{"loss_factor", f32, {}}; // the gradient is that of factor * loss
    State<Tensor> w1{"w1", f32, {pixels, hidden}}, b1{"b1", f32, {hidden}};
    State<Tensor> w2{"w2", f32, {hidden, hidden}}, b2{"b2", f32, {hidden}};
    State<Tensor> w3{"w3", f32, {hidden, classes}}, b3{"b3", f32, {classes}};
    Output<Tensor> loss{"loss", f32, {}};

    void generate() override {
        Tensor h1 = relu(dot(images, w1) + b1);
        Tensor h2 = relu(dot(h1, w2) + b2);
        Tensor logits = dot(h2, w3) + b3;
        loss = mean(softmax_cross_entropy(logits, labels), {0});
        std::vector<Tensor> parameters;
        for (State<Tensor> *p : states()) parameters.push_back(*p);
        const std::vector<Tensor> gradients = grad(loss_factor * loss, parameters);
        for (size_t i = 0; i < gradients.size(); i++) *states()[i] = parameters[i] - rate * gradients[i];
    }
};
SCALIDE_REGISTER_GENERATOR(DigitsStep, digits_step)

class DigitsForward : public Generator<DigitsForward> {
public:
    GeneratorParam<int> pixels{"pixels", 64}, hidden{"hidden", 128}, classes{"classes", 10};

    Input<Tensor> images{"images", f32, {"b", pixels}};
    Input<Tensor> w1{"w1", f32, {pixels, hidden}}, b1{"b1", f32, {hidden}};
    Input<Tensor> w2{"w2", f32, {hidden, hidden}}, b2{"b2", f32, {hidden}};
    Input<Tensor> w3{"w3", f32, {hidden, classes}}, b3{"b3", f32, {classes}};
    Output<Tensor> prediction{"prediction", i32, {"b"}};

    void generate() override {
        Tensor h1 = relu(dot(images, w1) + b1);
        Tensor h2 = relu(dot(h1, w2) + b2);
        prediction = argmax(dot(h2, w3) + b3, 1);
    }
};
SCALIDE_REGISTER_GENERATOR(DigitsForward, digits_forward)
