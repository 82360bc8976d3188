// One step that fits y = w * x + b to points by gradient descent.
#include <scalide/generator.h>

using namespace scalide;

class Line : public Generator<Line> {
public:
    Input<Tensor> x{"x", f32, {"n"}}, y{"y", f32, {"n"}};
    State<Tensor> w{"w", f32, {}}, b{"b", f32, {}};
    Output<Tensor> loss{"loss", f32, {}};

    void generate() override {
        Tensor error = w * x + b - y;
        loss = mean(error * error, {0});
        const std::vector<Tensor> gradients = grad(loss, {w, b});
        w = w - 0.1f * gradients[0];
        b = b - 0.1f * gradients[1];
    }
};
SCALIDE_REGISTER_GENERATOR(Line, line)
