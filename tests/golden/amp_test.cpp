#include "ir/text.h"
#include "judge.h"
#include "transforms/analysis/passes.h"
#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>

// The cases amp.* of jaxamp as programs in f32 under the policies amp_f16 and amp_bf16. The policy must round what jaxamp casts.

namespace scalide::test {
namespace {

using Json = nlohmann::json;

constexpr const char *linear_text = R"(
program linear(w: f32[6, 6], b: f32[6], x: f32[4, 6]) -> (y: f32[4, 6]) {
  product = dot_general(x, w) {contract: [[1], [0]]}
  row = broadcast_in_dim(b) {shape: [4, 6], dims: [1]}
  z = add(product, row)
  t = tanh(z)
  y = mul(t, 2)
})";

constexpr const char *cross_entropy_text = R"(
program cross_entropy(logits: f32[4, 6], targets: f32[4, 6]) -> (loss: f32[]) {
  largest = reduce_max(logits) {axes: [1]}
  rows = broadcast_in_dim(largest) {shape: [4, 6], dims: [0]}
  shifted = sub(logits, rows)
  powers = exp(shifted)
  sums = reduce_sum(powers) {axes: [1]}
  logs = log(sums)
  log_rows = broadcast_in_dim(logs) {shape: [4, 6], dims: [0]}
  log_softmax = sub(shifted, log_rows)
  products = mul(targets, log_softmax)
  total = reduce_sum(products) {axes: [0, 1]}
  mean = div(total, 4)
  loss = neg(mean)
})";

constexpr const char *stop_text = R"(
program stop(w: f32[6, 6], x: f32[4, 6]) -> (y: f32[4, 6]) {
  product = dot_general(x, w) {contract: [[1], [0]]}
  scope "amp_stop" {
    sum = add(product, x)
  }
  third = div(product, 3)
  y = sub(sum, third)
})";

constexpr const char *conv_text = R"(
program conv(x: f32[1, 5, 5, 3], kernel: f32[3, 3, 3, 3]) -> (y: f32[1, 5, 5, 3]) {
  z = conv_general_dilated(x, kernel) {low: [1, 1], high: [1, 1], lhs_spec: [0, 3, 1, 2], rhs_spec: [3, 2, 0, 1], out_spec: [0, 3, 1, 2]}
  y = add(z, x)
})";

/// The gradient with respect to w of the sum of the elements of `linear`.
Program gradient_program() {
    std::string text = linear_text;
    text.replace(text.find("(y: f32[4, 6])"), 14, "(loss: f32[])");
    text.replace(text.rfind('}'), 1, "  loss = reduce_sum(y) {axes: [0, 1]}\n}");
    Program program = infer_types(parse_program(text, "amp"), rules());
    program.results = {{"gradient", append_gradient(program, rules(), program.results[0].value, {program.arguments[0].value})[0]}};
    return program;
}

Program program_of(const std::string &function) {
    static const std::map<std::string, const char *> texts{
        {"linear", linear_text}, {"cross_entropy", cross_entropy_text}, {"stop", stop_text}, {"conv", conv_text}};
    return function == "grad_linear" ? gradient_program() : parse_program(texts.at(function), "amp");
}

/// jaxamp in bf16 runs on XLA for CPUs, which rounds products and partial sums of a matmul to bf16. So a sum is off by some units of its
/// largest terms. In f16, XLA adds in f32, and a result is at most one unit off.
double units(const std::string &dtype) { return dtype == "bf16" ? 2 : 1; }

class Amp : public ::testing::TestWithParam<std::string> {};

TEST_P(Amp, rounds_as_jaxamp) {
    static const GoldenSuite suite = load_golden("loss_scaling");
    for (const Json &entry : suite.index["cases"]) {
        if (entry["name"] != GetParam()) continue;
        const std::string dtype = entry["attrs"]["compute_dtype"];
        const Policy policy = load_policy(std::string(SCALIDE_RULES_DIR) + "/policies/amp_" + dtype + ".yaml");
        const ScaledProgram program(program_of(entry["attrs"]["fn"]), entry["inputs"], entry["outputs"], policy);
        const Tensor got = program.run(read_tensors(suite, entry["inputs"]))[0];
        Tensor expected = read_tensors(suite, entry["outputs"])[0];
        double largest = 0;
        for (const double value : expected.data.data) largest = std::max(largest, std::fabs(value));
        const double unit = std::ldexp(largest, -format_of(*parse_dtype(dtype)).mantissa_bits);
        expected.data.error.assign(expected.data.data.size(), units(dtype) * unit);
        EXPECT_EQ(difference(got, expected, expected, 0), "");
        const Tensor exact = read_tensors(suite, entry["true"])[0];
        EXPECT_NE(difference(got, exact, exact, 1), "") << "nothing was rounded";
        return;
    }
    FAIL() << "no such case";
}

std::vector<std::string> amp_cases() {
    std::vector<std::string> names;
    for (const char *function : {"linear", "cross_entropy", "stop", "conv", "grad_linear"})
        for (const char *dtype : {"f16", "bf16"}) names.push_back(std::string("amp.") + function + "." + dtype);
    return names;
}

INSTANTIATE_TEST_SUITE_P(loss_scaling, Amp, ::testing::ValuesIn(amp_cases()), [](const auto &info) {
    std::string name = info.param;
    std::ranges::replace(name, '.', '_');
    return name;
});

} // namespace
} // namespace scalide::test
