// Calls ten operators of a generated library by their C functions, in f32 and in scaled f16, and compares with the formulas.
#include "kernels.h"
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

namespace {

constexpr int64_t m = 3, n = 4;
using Values = std::vector<float>;

/// What a formula makes of an element of each operand.
using Formula = std::function<float(float, float)>;

Values elementwise(const Values &x, const Values &y, const Formula &formula) {
    Values result(x.size());
    for (size_t i = 0; i < x.size(); i++) result[i] = formula(x[i], y[i]);
    return result;
}

Values product(const Values &x, const Values &y) { // [m, n] by [n, m]
    Values result(m * m);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < m; j++)
            for (int64_t k = 0; k < n; k++) result[i * m + j] += x[i * n + k] * y[k * m + j];
    return result;
}

Values softmax(const Values &x) {
    Values result(x.size());
    for (int64_t i = 0; i < m; i++) {
        float sum = 0;
        for (int64_t j = 0; j < n; j++) sum += result[i * n + j] = std::exp(x[i * n + j]);
        for (int64_t j = 0; j < n; j++) result[i * n + j] /= sum;
    }
    return result;
}

Values column_sums(const Values &x) {
    Values result(n);
    for (int64_t i = 0; i < m * n; i++) result[i % n] += x[i];
    return result;
}

Values transposed(const Values &x) {
    Values result(x.size());
    for (int64_t i = 0; i < m * n; i++) result[i % n * m + i / n] = x[i];
    return result;
}

/// An array of T in memory, with a scale when T is narrow.
template<typename T>
struct Stored {
    std::vector<T> data;
    float scale = 0.5f;

    Stored(const Values &values, size_t count) : data(count) {
        for (size_t i = 0; i < values.size(); i++) data[i] = static_cast<T>(values[i] / factor());
    }
    float factor() const { return sizeof(T) == 2 ? scale : 1; }
    scalide_array view(const std::vector<int64_t> &shape) {
        return scalide_dense_array(data.data(), sizeof(T) == 2 ? &scale : nullptr, sizeof(T) == 2 ? SCALIDE_F16 : SCALIDE_F32,
                                   static_cast<int32_t>(shape.size()), shape.data());
    }
};

struct Case {
    const char *name;
    const scalide_program *plain, *scaled;
    int operands;
    std::vector<int64_t> second_shape, result_shape;
    Values expected;
};

/// The largest error of one program.
template<typename T>
float run(scalide_context *context, const scalide_program *program, const Case &c, const Values &x, const Values &y) {
    Stored<T> a(x, x.size()), b(y, y.size()), out({}, c.expected.size());
    std::vector<scalide_array> arrays = {a.view({m, n}), b.view(c.second_shape), out.view(c.result_shape)};
    if (c.operands == 1) arrays.erase(arrays.begin() + 1);
    scalide_binding *binding = nullptr;
    if (scalide_bind(context, program, arrays.data(), arrays.size(), &binding) != SCALIDE_OK || scalide_run(binding) != SCALIDE_OK) {
        std::printf("%s\n", scalide_message(context));
        return INFINITY;
    }
    scalide_binding_destroy(binding);
    float error = 0;
    for (size_t i = 0; i < c.expected.size(); i++)
        error = std::max(error, std::fabs(static_cast<float>(out.data[i]) * out.factor() - c.expected[i]));
    return error;
}

#define PROGRAMS(op) kernels_##op##_f32_program(), kernels_##op##_f16_scaled_program()

std::vector<Case> cases(const Values &x, const Values &y) {
    const std::vector<int64_t> shape = {m, n}, turned = {n, m};
    const auto map = [&](const Formula &formula) { return elementwise(x, y, formula); };
    return {
        {"add", PROGRAMS(add), 2, shape, shape, map([](float a, float b) { return a + b; })},
        {"mul", PROGRAMS(mul), 2, shape, shape, map([](float a, float b) { return a * b; })},
        {"max", PROGRAMS(max), 2, shape, shape, map([](float a, float b) { return std::max(a, b); })},
        {"exp", PROGRAMS(exp), 1, shape, shape, map([](float a, float) { return std::exp(a); })},
        {"tanh", PROGRAMS(tanh), 1, shape, shape, map([](float a, float) { return std::tanh(a); })},
        {"gelu", PROGRAMS(gelu), 1, shape, shape, map([](float a, float) { return 0.5f * a * std::erfc(-a / std::sqrt(2.0f)); })},
        {"dot_general", PROGRAMS(dot_general), 2, turned, {m, m}, product(x, y)},
        {"reduce_sum", PROGRAMS(reduce_sum), 1, shape, {n}, column_sums(x)},
        {"softmax", PROGRAMS(softmax), 1, shape, shape, softmax(x)},
        {"transpose", PROGRAMS(transpose), 1, shape, turned, transposed(x)},
    };
}

} // namespace

int main() {
    Values x(m * n), y(m * n);
    for (size_t i = 0; i < x.size(); i++) {
        x[i] = 0.25f * static_cast<float>(i) - 1.5f;
        y[i] = 0.5f * static_cast<float>(i % 5) - 1;
    }
    scalide_context *context = nullptr;
    if (scalide_context_create(nullptr, &context) != SCALIDE_OK) return 1;
    bool good = true;
    for (const Case &c : cases(x, y)) {
        const float plain = run<float>(context, c.plain, c, x, y), scaled = run<_Float16>(context, c.scaled, c, x, y);
        std::printf("%-12s largest error %.1e in f32, %.1e in scaled f16\n", c.name, plain, scaled);
        good = good && plain < 2e-6f && scaled < 4e-3f;
    }
    scalide_context_destroy(context);
    return good ? 0 : 1;
}
