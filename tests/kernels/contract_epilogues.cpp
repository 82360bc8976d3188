#include "kernels/contract_cases.h"
#include <cmath>
#include <gtest/gtest.h>
#include <set>

// What follows the product, and what is folded beside it.

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
const std::vector<std::array<int64_t, 3>> shapes = {{1, 1, 1}, {3, 17, 5}, {16, 64, 32}, {65, 100, 33}, {130, 10, 20}, {9, 300, 0}};

struct Inputs {
    std::mt19937 random;
    int64_t m, n, k;
    Doubles x = random_integers(size_t(m * k), 3, random), y = random_integers(size_t(k * n), 3, random);
    Doubles z = multiply({1, m, n, k}, x, y);
    std::vector<Words> words = {to_words(x, Dtype::f32), to_words(y, Dtype::f32)};
    Extent::Bindings symbols = {{"m", m}, {"n", n}, {"k", k}};

    Inputs(const std::array<int64_t, 3> &shape) : random(uint32_t(shape[0] * 31 + shape[1])), m(shape[0]), n(shape[1]), k(shape[2]) {}

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
    CompiledKernel kernel(Epilogue{{},
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
    CompiledKernel kernel(Epilogue{{},
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

TEST(contract, kernels_need_threads_and_memory_only) {
    CompiledKernel kernel(parse_program(Form{true, true, true}.text(), "k"));
    for (const std::string &name : kernel.undefined_symbols()) {
        const std::set<std::string> allowed = {"halide_do_par_for", "halide_malloc", "halide_free", "memset", "memcpy"};
        EXPECT_TRUE(allowed.count(name)) << name;
    }
}

} // namespace
} // namespace scalide::contract_test
