#include "ir/text.h"
#include "support/compiled/compiled_program.h"
#include "support/programs/random_program.h"
#include "support/programs/rules.h"
#include "support/rounding_errors/monte_carlo.h"
#include "support/rounding_errors/running_error.h"
#include "transforms/analysis/passes.h"
#include <gtest/gtest.h>

// A small convolutional network and its gradients, compiled with a symbolic batch, against the interpreter on the same kernels.

namespace scalide {

namespace {

constexpr const char *network = R"(
program network [b in 1..64] (x: f32[b, 8, 8, 3] scaled, labels: i32[b], k1: f32[3, 3, 3, 8] scaled, c1: f32[8], gain: f32[8], bias: f32[8],
                              k2: f32[3, 3, 8, 12], w: f32[48, 10], key: u32[2]) -> (loss: f32[]) {
  y1 = conv_general_dilated(x, k1) {low: [1, 1], high: [1, 1], lhs_spec: [0, 3, 1, 2], rhs_spec: [3, 2, 0, 1], out_spec: [0, 3, 1, 2]}
  cb = broadcast_in_dim(c1) {shape: [b, 8, 8, 8], dims: [3]}
  a1 = add(y1, cb)
  n1, m1, v1 = batch_norm(a1, gain, bias)
  h1 = relu(n1)
  p1 = max_pool(h1) {window: [1, 2, 2, 1], strides: [1, 2, 2, 1]}
  y2 = conv_general_dilated(p1, k2) {low: [1, 1], high: [1, 1], lhs_spec: [0, 3, 1, 2], rhs_spec: [3, 2, 0, 1], out_spec: [0, 3, 1, 2]}
  h2 = relu(y2)
  p2 = avg_pool(h2) {window: [1, 2, 2, 1], strides: [1, 2, 2, 1]}
  flat = reshape(p2) {shape: [b, 48]}
  z = dot_general(flat, w) {contract: [[1], [0]]}
  losses = softmax_cross_entropy(z, labels)
  loss = mean(losses) {axes: [0]}
}
)";

/// A file of Scalide, or one next to this file.
Policy policy_named(const std::string &name) {
    const std::filesystem::path file = std::filesystem::path(SCALIDE_RULES_DIR) / "policies" / (name + ".yaml");
    return load_policy(std::filesystem::exists(file) ? file : std::filesystem::path(SCALIDE_TESTS_DIR) / "programs" / (name + ".yaml"));
}

Program network_with_gradients() {
    Program program = infer_types(parse_program(network, "network"), rules());
    std::vector<ValueId> parameters;
    for (size_t i = 2; i + 1 < program.arguments.size(); i++) parameters.push_back(program.arguments[i].value);
    const std::vector<ValueId> gradients = append_gradient(program, rules(), program.results[0].value, parameters);
    for (size_t i = 0; i < gradients.size(); i++) program.results.push_back({"gradient" + std::to_string(i), gradients[i]});
    return program;
}

/// Images, parameters near 1 / sqrt(fan in), scales of 1/2.
std::vector<Array> draw_inputs(const Program &program, int64_t images, unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<double> normal(0, 0.3);
    std::vector<Array> inputs = zero_inputs(program, {{"b", images}});
    for (size_t i = 0; i < inputs.size(); i++) {
        const Dtype dtype = inputs[i].dtype;
        const bool is_scale = program.arguments[i].part.is_scale();
        for (double &value : inputs[i].data)
            value = is_scale ? 0.5 : is_integer(dtype) ? double(random() % 10) : round_to(dtype, normal(random));
    }
    return inputs;
}

class ConvolutionalNetwork : public testing::TestWithParam<const char *> {};

TEST_P(ConvolutionalNetwork, compiled_equals_interpreted) {
    const CompiledProgram compiled(network_with_gradients(), rules(), policy_named(GetParam()));
    for (const int64_t images : {1, 5}) {
        SCOPED_TRACE(std::to_string(images) + " images, seed 7");
        const std::vector<Array> inputs = draw_inputs(compiled.fused(), images, 7);
        const std::vector<Array> expected = interpret_with_drawn_errors(compiled.fused(), inputs, rules(), Mode::stored);
        EXPECT_EQ(difference(compiled.run(inputs), expected), "");
    }
}

TEST(ConvolutionalNetworks, stochastic_rounding_follows_the_key) {
    const CompiledProgram compiled(network_with_gradients(), rules(), policy_named("f8_stochastic"));
    std::vector<Array> inputs = draw_inputs(compiled.fused(), 2, 7);
    const std::vector<Array> first = compiled.run(inputs), again = compiled.run(inputs);
    inputs.back().data[1]++;
    const std::vector<Array> other = compiled.run(inputs);
    EXPECT_EQ(first[0].data, again[0].data);
    EXPECT_NE(first[0].data, other[0].data);
    EXPECT_NEAR(first[0].data[0], other[0].data[0], 0.25 * first[0].data[0]); // both are the loss, but for the rounding of f8
}

INSTANTIATE_TEST_SUITE_P(programs, ConvolutionalNetwork, testing::Values("f32", "f16_scaled", "f8_scaled", "f8_stochastic"),
                         [](const auto &info) { return std::string(info.param); });

} // namespace

} // namespace scalide
