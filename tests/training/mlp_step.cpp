// The step of the model `mlp` by stochastic gradient descent (models.py), in the C++ DSL.
#include <scalide/generator.h>

using namespace scalide;

class MlpStep : public Generator<MlpStep> {
public:
    GeneratorParam<int> depth{"depth", 4}, width{"width", 32}, rows{"rows", 32};
    GeneratorParam<double> rate{"rate", 0.05};

    Input<Tensor> x{"x", f32, {rows, width}}, y{"y", f32, {rows, width}};
    Output<Tensor> loss{"loss", f32, {}};
    std::vector<State<Tensor>> parameters; // w and b of one layer after the other

    MlpStep() {
        for (int i = 0; i < depth; i++) {
            parameters.push_back({"w" + std::to_string(i), f32, {width, width}});
            parameters.push_back({"b" + std::to_string(i), f32, {width}});
        }
    }

    void generate() override {
        Tensor h = x;
        for (int i = 0; i < depth; i++) {
            const Tensor sums = dot(h, parameters[2 * i]) + parameters[2 * i + 1];
            h = i + 1 < depth ? relu(sums) : sums;
        }
        loss = mean(square(h - y), {0, 1});
        std::vector<Tensor> values;
        for (const State<Tensor> *p : states()) values.push_back(*p);
        const std::vector<Tensor> gradients = grad(loss, values);
        for (size_t i = 0; i < gradients.size(); i++) *states()[i] = values[i] - static_cast<double>(rate) * gradients[i];
    }
};
SCALIDE_REGISTER_GENERATOR(MlpStep, mlp_step)
