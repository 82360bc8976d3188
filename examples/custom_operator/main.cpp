// Runs the user's operator and its gradient, plain and with a scaled f16 state, and compares both with the formulas.
#include "custom_f16.h"
#include "custom_f32.h"
#include <cmath>
#include <cstdio>

namespace {

constexpr int64_t count[] = {5};
const float inputs[5] = {-2, -0.5f, 0, 0.25f, 3};

float softsign(float x) { return x / (1 + std::fabs(x)); }
float slope(float x) { return 1 / ((1 + std::fabs(x)) * (1 + std::fabs(x))); }

// w starts at 1: y = softsign(x), and w becomes 1 - softsign'(x) * x. Returns the largest error.
template<typename T>
float run(scalide_context *context, const scalide_program *program, int32_t dtype, float *scale) {
    alignas(64) T w[5];
    float x[5], y[5], error = 0;
    for (int i = 0; i < 5; i++) {
        x[i] = inputs[i];
        w[i] = static_cast<T>(1 / (scale ? *scale : 1));
    }
    uint32_t rounding_step;
    scalide_array arrays[] = {scalide_dense_array(x, nullptr, SCALIDE_F32, 1, count), scalide_dense_array(w, scale, dtype, 1, count),
                              scalide_dense_array(y, nullptr, SCALIDE_F32, 1, count),
                              scalide_dense_array(&rounding_step, nullptr, SCALIDE_U32, 0, nullptr)}; // of f16_scaled: its state
    const size_t arguments = scalide_argument_count(program);
    scalide_binding *binding = nullptr;
    if (scalide_initial_state(context, program, arrays, arguments) != SCALIDE_OK ||
        scalide_bind(context, program, arrays, arguments, &binding) != SCALIDE_OK || scalide_run(binding) != SCALIDE_OK) {
        std::printf("%s\n", scalide_message(context));
        return INFINITY;
    }
    scalide_binding_destroy(binding);
    for (int i = 0; i < 5; i++) {
        const float new_w = static_cast<float>(w[i]) * (scale ? *scale : 1);
        error = std::fmax(error, std::fabs(y[i] - softsign(inputs[i])));
        error = std::fmax(error, std::fabs(new_w - (1 - slope(inputs[i]) * inputs[i])));
    }
    return error;
}

} // namespace

int main() {
    scalide_context *context = nullptr;
    if (scalide_context_create(nullptr, &context) != SCALIDE_OK) return 1;
    float scale = 0.5f;
    const float plain = run<float>(context, custom_f32_program(), SCALIDE_F32, nullptr);
    const float scaled = run<_Float16>(context, custom_f16_program(), SCALIDE_F16, &scale);
    std::printf("softsign: largest error %.1e in f32, %.1e with a scaled f16 state\n", plain, scaled);
    scalide_context_destroy(context);
    return plain < 1e-6f && scaled < 2e-3f ? 0 : 1;
}
