// One training step of a digit classifier for one rank of several: each rank has a part of the batch, and all ranks have all parameters.
#include <scalide/generator.h>

using namespace scalide;

class DigitsStep : public Generator<DigitsStep> {
public:
    GeneratorParam<int> pixels{"pixels", 64}, hidden{"hidden", 128}, classes{"classes", 10};

    Input<Tensor> images{"images", f32, {"b", pixels}};
    Input<Tensor> labels{"labels", i32, {"b"}};
    Input<Tensor> rate{"rate", f32, {}};
    State<Tensor> w1{"w1", f32, {pixels, hidden}}, b1{"b1", f32, {hidden}};
    State<Tensor> w2{"w2", f32, {hidden, classes}}, b2{"b2", f32, {classes}};
    Output<Tensor> loss{"loss", f32, {}};

    void generate() override {
        const RankGroup data("data");
        const Tensor logits = dot(relu(dot(images, w1) + b1), w2) + b2;
        const Tensor own = mean(softmax_cross_entropy(logits, labels), {0});
        loss = all_reduce_mean(own, data);
        std::vector<Tensor> parameters;
        for (State<Tensor> *p : states()) parameters.push_back(*p);
        const std::vector<Tensor> gradients = grad(own, parameters);
        for (size_t i = 0; i < gradients.size(); i++) *states()[i] = parameters[i] - rate * all_reduce_mean(gradients[i], data);
    }
};
SCALIDE_REGISTER_GENERATOR(DigitsStep, digits_step)
