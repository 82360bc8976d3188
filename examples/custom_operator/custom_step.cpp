// A user's operator, from softsign.yaml beside this file, used like any other: its value, its gradient, scaled.
#include <scalide/generator.h>

using namespace scalide;

class CustomStep : public Generator<CustomStep> {
public:
    Input<Tensor> x{"x", f32, {"n"}};
    State<Tensor> w{"w", f32, {"n"}};
    Output<Tensor> y{"y", f32, {"n"}};

    void generate() override {
        y = softsign(x * w);
        w = w - grad(reduce_sum(y, {0}), w);
    }
};
SCALIDE_REGISTER_GENERATOR(CustomStep, custom_step)
