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
        Tensor z1 = dot(images, w1) + b1, h1 = relu(z1).named("h1");
        Tensor z2 = dot(h1, w2) + b2, h2 = relu(z2).named("h2");
        Tensor logits = (dot(h2, w3) + b3).named("logits");
        loss = mean(softmax_cross_entropy(logits, labels), {0});
        std::vector<Tensor> values;
        for (State<Tensor> *p : states()) values.push_back(*p);
        values.insert(values.end(), {z1, z2, logits}); // a gradient with a name is easier to find in a report
        const std::vector<Tensor> gradients = grad(loss_factor * loss, values);
        const char *names[] = {"z1_gradient", "z2_gradient", "logits_gradient"};
        for (size_t i = 0; i < states().size(); i++) *states()[i] = values[i] - rate * gradients[i];
        for (size_t i = 0; i < 3; i++) gradients[states().size() + i].named(names[i]);
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
