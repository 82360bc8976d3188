#include "frontend/reductions.h"
#include "frontend/tracer.h"
#include "interpret/interpret.h"
#include "support/programs/rules.h"
#include "words_of.h"
#include <cmath>
#include <gtest/gtest.h>

// Reductions by a function of the user, as the DSL writes them down.

using namespace scalide;

namespace {

/// What `function` makes of one array.
std::vector<Array> run(const Array &x, const std::function<std::vector<Tensor>(const Tensor &)> &function) {
    Tracer tracer(rules(), "p");
    Type type{x.dtype, {}};
    for (const int64_t extent : x.shape) type.shape.emplace_back(extent);
    for (const Tensor &result : function(tracer.add_argument("x", type, {}))) {
        const std::string name = "y" + std::to_string(tracer.program().results.size());
        tracer.program().results.push_back({name, result.value()});
    }
    return interpret(tracer.program(), {x}, rules(), Mode::real);
}

Tensor hypotenuse(const Tensor &a, const Tensor &b) { return apply("sqrt", {a * a + b * b}); }

std::string error_of(const std::function<std::vector<Tensor>(const Tensor &)> &function) {
    return words_of_error([&] { run({Dtype::f32, {2, 3}, {0, 1, 2, 3, 4, 5}}, function); });
}

const Array matrix{Dtype::f32, {2, 3}, {3, -4, 12, 8, 15, 0}};

} // namespace

TEST(frontend, reduce_by_a_function) {
    const std::vector<Array> got = run(matrix, [](const Tensor &x) {
        return std::vector<Tensor>{reduce(x, 0, hypotenuse, {{1}}), reduce(x, 0, hypotenuse)};
    });
    EXPECT_EQ(got[0].data, (std::vector<double>{13, 17}));
    EXPECT_NEAR(got[1].data[0], std::sqrt(13.0 * 13 + 17 * 17), 1e-12);
}

TEST(frontend, reduce_several_arrays_together) {
    const auto better = [](const std::vector<Tensor> &a, const std::vector<Tensor> &b) {
        const Tensor first = apply("ge", {a[0], b[0]});
        return std::vector<Tensor>{apply("select_n", {first, b[0], a[0]}), apply("select_n", {first, b[1], a[1]})};
    };
    const std::vector<Array> got = run(matrix, [&](const Tensor &x) {
        const Tensor places = apply("iota", {}, {{"shape", to_attribute(x.shape())}, {"dimension", 1}});
        return reduce({x, places}, {-INFINITY, -1}, better, {{1}});
    });
    EXPECT_EQ(got[0].data, (std::vector<double>{12, 15}));
    EXPECT_EQ(got[1].data, (std::vector<double>{2, 1}));
}

TEST(frontend, reduce_windows_by_a_function) {
    const auto product = [](const Tensor &a, const Tensor &b) { return a * b; };
    const std::vector<Array> got = run(matrix, [&](const Tensor &x) {
        return std::vector<Tensor>{reduce_window(x, 1, product, {.window = {1, 2}}),
                                   reduce_window(x, 2, product, {.window = {2, 1}, .low = {1, 0}, .high = {1, 0}})};
    });
    EXPECT_EQ(got[0].data, (std::vector<double>{-12, -48, 120, 0}));
    EXPECT_EQ(got[1].data, (std::vector<double>{12, -16, 48, 48, -120, 0, 32, 60, 0}));
}

TEST(frontend, gradient_of_a_reduction) {
    const std::vector<Array> got = run(matrix, [&](const Tensor &x) { return std::vector<Tensor>{grad(reduce(x, 0, hypotenuse), x)}; });
    const double norm = std::sqrt(13.0 * 13 + 17 * 17);
    for (size_t i = 0; i < 6; i++) EXPECT_NEAR(got[0].data[i], matrix.data[i] / norm, 1e-7) << i; // sqrt at 0 * 0 of the init included
}

TEST(frontend, mistakes_of_reductions) {
    EXPECT_EQ(
        error_of([](const Tensor &x) { return std::vector<Tensor>{reduce(x, 0, [&](const Tensor &a, const Tensor &) { return a + x; })}; }),
        "this tensor belongs to another program. Use tensors only in the generator that declares them, and pass them to another generator "
        "with call(). Inside the function of a reduction, use only its arguments and numbers. A value of a body or a branch leaves it as a "
        "result");
    EXPECT_EQ(error_of([](const Tensor &x) {
                  return reduce({x, x}, {0}, [](const std::vector<Tensor> &a, const std::vector<Tensor> &) { return a; });
              }),
              "reduce: the number of initial values must be the number of arrays, got 2 arrays and 1 initial values");
}
