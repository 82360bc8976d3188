// A transformer encoder, its gradients and one step of gradient descent: the benchmark of FP8 layers. Nothing here says in which formats.
#include <scalide/generator.h>

using namespace scalide;

namespace {

Tensor norm(const std::string &name, const Tensor &x, int width) {
    const State<Tensor> &gain = add_state(name + ".gain", f32, {width}, initializers::ones());
    const State<Tensor> &bias = add_state(name + ".bias", f32, {width}, initializers::zeros());
    return layer_norm(x, gain, bias);
}

} // namespace

class EncoderStep : public Generator<EncoderStep> {
public:
    GeneratorParam<int> layers{"layers", 1}, batch{"batch", 4}, length{"length", 128}, width{"width", 256}, heads{"heads", 4};
    GeneratorParam<double> rate{"rate", 0.5};
    Input<Tensor> x{"x", f32, {batch, length, width}}, target{"target", f32, {batch, length, width}};
    Output<Tensor> loss{"loss", f32, {}};

    void generate() override {
        Tensor y = x;
        for (int i = 0; i < layers; i++) y = layer("layer" + std::to_string(i), y);
        loss = mean(square(y - target));
        const std::vector<State<Tensor> *> parameters = states();
        std::vector<Tensor> values;
        for (const State<Tensor> *parameter : parameters) values.push_back(*parameter);
        const std::vector<Tensor> gradients = grad(loss, values);
        for (size_t i = 0; i < parameters.size(); i++) *parameters[i] = values[i] - rate * gradients[i];
    }

private:
    // Layer norm, multi-head attention, layer norm and an MLP, with two residual connections.
    Tensor layer(const std::string &name, const Tensor &x) {
        const Features per_head{heads, width.value() / heads.value()};
        const Tensor h = norm(name + ".norm1", x, width);
        const Tensor query = Dense(name + ".query", per_head)(h), key = Dense(name + ".key", per_head)(h),
                     value = Dense(name + ".value", per_head)(h);
        const Tensor attended = x + Dense(name + ".projection", width, {.axes = 2})(attention(query, key, value));
        const Tensor hidden = Dense(name + ".mlp1", 4 * width, {.activation = "gelu_tanh"})(norm(name + ".norm2", attended, width));
        return attended + Dense(name + ".mlp2", width)(hidden);
    }
};
SCALIDE_REGISTER_GENERATOR(EncoderStep, encoder_step)
SCALIDE_REGISTER_INITIAL_STATE(EncoderStep, encoder_state)
