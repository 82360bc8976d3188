#include "kernels/contract_cases.h"
#include <cmath>
#include <gtest/gtest.h>

// Operations after a matmul, and reductions fused with it.

namespace scalide::contract_test {
namespace {

/// A kernel over x: f32[m, k] and y: f32[k, n] (or y: f32[n, k]) with further arguments.
struct Epilogue {
    Form form;
    std::string arguments, results, lines;

    Program program() const {
        return parse_program("program k {kind: contract} (x: " + form.lhs_type() + ", y: " + form.rhs_type() + arguments + ") -> (" +
                                 results + ") {\n" + form.lines() + lines + "}\n",
                             "k");
    }
};

/// Shapes that every epilogue is tried on.
const std::vector<std::array<int64_t, 3>> shapes = {{1, 1, 1},     {3, 17, 5},  {16, 64, 32}, {65, 100, 33},
                                                    {130, 10, 20}, {9, 300, 7}, {9, 300, 0}};

struct Inputs {
    std::mt19937 random;
    int64_t m, n, k, batch;
    Doubles x = random_integers(size_t(batch * m * k), 3, random), y = random_integers(size_t(batch * k * n), 3, random);
    Doubles z = multiply({batch, m, n, k}, x, y);
    std::vector<Words> words = {to_words(x, Dtype::f32), to_words(y, Dtype::f32)};
    Extent::Bindings symbols = {{"m", m}, {"n", n}, {"k", k}, {"b", batch}};

    Inputs(const std::array<int64_t, 3> &shape, int64_t batch = 1)
        : random(uint32_t(shape[0] * 31 + shape[1])), m(shape[0]), n(shape[1]), k(shape[2]), batch(batch) {}

    /// One more argument of small integers.
    Doubles add(int64_t count, Dtype dtype = Dtype::f32) {
        Doubles values = random_integers(size_t(count), 3, random);
        words.push_back(to_words(values, dtype));
        return values;
    }
    Doubles map(const std::function<double(size_t i, int64_t row, int64_t column)> &value) const {
        Doubles result(z.size());
        for (size_t i = 0; i < z.size(); i++) {
            result[i] = value(i, int64_t(i) / n, int64_t(i) % n);
        }
        return result;
    }
};

TEST(contract, bias_relu_and_residual) {
    Kernel kernel(Epilogue{{},
                           ", bias: f32[n], residual: f32[m, n], scale: f32[]",
                           "out: f32[m, n]",
                           "  s = broadcast_in_dim(scale) {dims: []} : f32[m, n]\n"
                           "  scaled = mul(z, s) : f32[m, n]\n"
                           "  b = broadcast_in_dim(bias) {dims: [1]} : f32[m, n]\n"
                           "  biased = add(scaled, b) : f32[m, n]\n"
                           "  zero = constant() {value: 0} : f32[]\n"
                           "  zeros = broadcast_in_dim(zero) {dims: []} : f32[m, n]\n"
                           "  active = max(biased, zeros) : f32[m, n]\n"
                           "  out = add(active, residual) : f32[m, n]\n"}
                      .program());
    for (const auto &shape : shapes) {
        Inputs in(shape);
        Doubles bias = in.add(in.n), residual = in.add(in.m * in.n);
        in.words.push_back(to_words({2.0}, Dtype::f32));
        Doubles got = to_doubles(kernel.run(in.words, in.symbols)[0], Dtype::f32);
        EXPECT_EQ(got, in.map([&](size_t i, int64_t, int64_t column) {
            return std::max(in.z[i] * 2 + bias[size_t(column)], 0.0) + residual[i];
        }));
    }
}

TEST(contract, several_results_of_several_formats) {
    Kernel kernel(Epilogue{{},
                           ", per_row: f32[m], mask: f32[m, n]",
                           "out: bf16[m, n], flags: bool[m, n], product: f32[m, n]",
                           "  r = broadcast_in_dim(per_row) {dims: [0]} : f32[m, n]\n"
                           "  sum = add(z, r) : f32[m, n]\n"
                           "  zero = constant() {value: 0} : f32[]\n"
                           "  zeros = broadcast_in_dim(zero) {dims: []} : f32[m, n]\n"
                           "  flags = gt(mask, zeros) : bool[m, n]\n"
                           "  masked = select_n(flags, zeros, sum) : f32[m, n]\n"
                           "  out = convert_element_type(masked) : bf16[m, n]\n"
                           "  product = neg(z) : f32[m, n]\n"}
                      .program());
    for (const auto &shape : shapes) {
        Inputs in(shape);
        Doubles per_row = in.add(in.m), mask = in.add(in.m * in.n);
        std::vector<Words> results = kernel.run(in.words, in.symbols);
        EXPECT_EQ(to_doubles(results[0], Dtype::bf16), in.map([&](size_t i, int64_t row, int64_t) {
            return mask[i] > 0 ? round_to(Dtype::bf16, in.z[i] + per_row[size_t(row)]) : 0.0;
        }));
        EXPECT_EQ(to_doubles(results[2], Dtype::f32), in.map([&](size_t i, int64_t, int64_t) { return -in.z[i]; }));
        for (size_t i = 0; i < mask.size(); i++) {
            EXPECT_EQ(results[1][i], mask[i] > 0);
        }
    }
}

/// SGD: w = w - lr * x^T y, together with b = b - lr * sum over the batch of y.
TEST(contract, weights_and_biases_are_updated_in_place) {
    Form form;
    form.lhs_transposed = true;
    Kernel kernel(Epilogue{form, ", w: f32[m, n] inout, b: f16[n] inout, rate: f32[]", "w = w1, b = b1",
                           "  rates = broadcast_in_dim(rate) {dims: []} : f32[m, n]\n"
                           "  step = mul(rates, z) : f32[m, n]\n"
                           "  w1 = sub(w, step) : f32[m, n]\n"
                           "  sums = reduce_sum(y) {axes: [0]} : f32[n]\n"
                           "  rates_b = broadcast_in_dim(rate) {dims: []} : f32[n]\n"
                           "  step_b = mul(rates_b, sums) : f32[n]\n"
                           "  bw = convert_element_type(b) : f32[n]\n"
                           "  b2 = sub(bw, step_b) : f32[n]\n"
                           "  b1 = convert_element_type(b2) : f16[n]\n"}
                      .program());
    for (const auto &shape : shapes) {
        Inputs in(shape);
        in.z = multiply({1, in.m, in.n, in.k, true, false}, in.x, in.y);
        Doubles w = in.add(in.m * in.n), b = in.add(in.n, Dtype::f16);
        in.words.push_back(to_words({0.5}, Dtype::f32));
        kernel.run(in.words, in.symbols);
        EXPECT_EQ(to_doubles(in.words[2], Dtype::f32), in.map([&](size_t i, int64_t, int64_t) { return w[i] - 0.5 * in.z[i]; }));
        Doubles sums(size_t(in.n), 0.0);
        for (size_t i = 0; i < in.y.size(); i++) {
            sums[i % size_t(in.n)] += in.y[i];
        }
        for (size_t i = 0; i < b.size(); i++) {
            b[i] -= 0.5 * sums[i];
        }
        EXPECT_EQ(to_doubles(in.words[3], Dtype::f16), b);
    }
}

TEST(contract, amax_and_sum_of_squares_beside_the_result) {
    for (const int64_t batch : {0, 3}) { // 0: no batch axis
        Form form;
        form.batched = batch > 0;
        const std::string type = form.result_type(), axes = form.batched ? "[0, 1, 2]" : "[0, 1]";
        Kernel kernel(Epilogue{form, ", bias: f32[n]", "out: " + type + ", amax: f32[], norm: f32[]",
                               "  c = broadcast_in_dim(bias) {dims: [" + std::string(form.batched ? "2" : "1") + "]} : " + type +
                                   "\n  out = add(z, c) : " + type + "\n  magnitude = abs(out) : " + type +
                                   "\n  amax = reduce_max(magnitude) {axes: " + axes + "} : f32[]\n  squares = mul(out, out) : " + type +
                                   "\n  total = reduce_sum(squares) {axes: " + axes + "} : f32[]\n  norm = sqrt(total) : f32[]\n"}
                          .program());
        for (const auto &shape : shapes) {
            Inputs in(shape, std::max<int64_t>(batch, 1));
            SCOPED_TRACE(std::to_string(in.m) + " x " + std::to_string(in.n) + " x " + std::to_string(in.k));
            Doubles bias = in.add(in.n);
            std::vector<Words> results = kernel.run(in.words, in.symbols);
            double amax = 0, total = 0;
            Doubles expected = in.map([&](size_t i, int64_t, int64_t column) { return in.z[i] + bias[size_t(column)]; });
            for (double value : expected) {
                amax = std::max(amax, std::abs(value));
                total += value * value;
            }
            EXPECT_EQ(to_doubles(results[0], Dtype::f32), expected);
            EXPECT_EQ(to_doubles(results[1], Dtype::f32)[0], amax);
            EXPECT_FLOAT_EQ(float(to_doubles(results[2], Dtype::f32)[0]), float(std::sqrt(total)));
        }
    }
}

#ifndef SCALIDE_TEST_OPENCL // a GPU reduces whole arrays after the matmul
/// The amax and the sum of w before the update, and the sum of the new w, in the kernel that overwrites w.
TEST(contract, weights_are_reduced_before_they_are_overwritten) {
    for (const Dtype dtype : {Dtype::f32, Dtype::bf16}) {
        for (const int64_t batch : {0, 3}) { // 0: no batch axis
            Form form;
            form.batched = batch > 0;
            const std::string type = form.result_type(), axes = form.batched ? "[0, 1, 2]" : "[0, 1]";
            const std::string stored = std::string(to_string(dtype)) + type.substr(3);
            Kernel kernel(Epilogue{form, ", w: " + stored + " inout", "w = w1, amax: f32[], before: f32[], after: f32[]",
                                   "  old = convert_element_type(w) : " + type + "\n  magnitude = abs(old) : " + type +
                                       "\n  amax = reduce_max(magnitude) {axes: " + axes +
                                       "} : f32[]\n  before = reduce_sum(old) {axes: " + axes + "} : f32[]\n  new = sub(old, z) : " + type +
                                       "\n  w1 = convert_element_type(new) : " + stored + "\n  after = reduce_sum(new) {axes: " + axes +
                                       "} : f32[]\n"}
                              .program());
            for (const auto &shape : shapes) {
                Inputs in(shape, std::max<int64_t>(batch, 1));
                SCOPED_TRACE(std::to_string(in.m) + " x " + std::to_string(in.n) + " x " + std::to_string(in.k));
                const Doubles w = in.add(int64_t(in.z.size()), dtype);
                const std::vector<Words> results = kernel.run(in.words, in.symbols);
                double amax = 0, before = 0, after = 0;
                for (size_t i = 0; i < w.size(); i++) {
                    amax = std::max(amax, std::abs(w[i]));
                    before += w[i];
                    after += w[i] - in.z[i];
                }
                EXPECT_EQ(to_doubles(in.words[2], dtype),
                          in.map([&](size_t i, int64_t, int64_t) { return round_to(dtype, w[i] - in.z[i]); }));
                EXPECT_EQ(to_doubles(results[1], Dtype::f32)[0], amax);
                EXPECT_EQ(to_doubles(results[2], Dtype::f32)[0], before); // sums of small integers are exact in f32
                EXPECT_EQ(to_doubles(results[3], Dtype::f32)[0], after);
            }
        }
    }
}
/// With known extents, one panel or several, and an incomplete last tile.
TEST(contract, weights_of_known_extents_are_reduced_before_they_are_overwritten) {
    for (const auto &[m, n] : std::vector<std::array<int64_t, 2>>{{65, 3}, {127, 16}, {64, 10}, {65, 17}, {33, 100}}) {
        const std::string type = "f32[" + std::to_string(m) + ", " + std::to_string(n) + "]";
        SCOPED_TRACE(type);
        Kernel kernel(parse_program("program k {kind: contract} (x: f32[4, " + std::to_string(m) + "], y: f32[4, " + std::to_string(n) +
                                        "], w: " + type + " inout) -> (w = u, amax: f32[]) {\n  g = dot_general(x, y) {batch: [[], []], " +
                                        "contract: [[0], [0]]} : " + type + "\n  u = sub(w, g) : " + type + "\n  a = abs(w) : " + type +
                                        "\n  amax = reduce_max(a) {axes: [0, 1]} : f32[]\n}\n",
                                    "k"));
        Inputs in({m, n, 4});
        in.z = multiply({1, m, n, 4, true, false}, in.x, in.y);
        const Doubles w = in.add(m * n);
        const std::vector<Words> results = kernel.run(in.words, {});
        double amax = 0;
        for (const double value : w) amax = std::max(amax, std::abs(value));
        EXPECT_EQ(to_doubles(in.words[2], Dtype::f32), in.map([&](size_t i, int64_t, int64_t) { return w[i] - in.z[i]; }));
        EXPECT_EQ(to_doubles(results[1], Dtype::f32)[0], amax);
    }
}
#endif

} // namespace
} // namespace scalide::contract_test
