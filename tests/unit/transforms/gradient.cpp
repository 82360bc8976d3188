#include "ir/text.h"
#include "ir/verify.h"
#include "support.h"
#include "support/programs/random_program.h"
#include "transforms/analysis/passes.h"
#include <gtest/gtest.h>

namespace scalide {

namespace {

std::vector<ValueId> arguments_of(const Program &program) {
    std::vector<ValueId> values;
    for (const Argument &argument : program.arguments) values.push_back(argument.value);
    return values;
}

/// The program with the gradients by all its arguments as its results.
Program gradient_of(Program program) {
    const std::vector<ValueId> gradients = append_gradient(program, rules(), program.results[0].value, arguments_of(program));
    program.results.clear();
    for (const ValueId gradient : gradients) program.results.push_back({program.value_name(gradient), gradient});
    verify(program, "append_gradient");
    return program;
}

double loss_of(const Program &program, const std::vector<Array> &inputs) {
    return interpret(program, inputs, rules(), Mode::real)[0].data[0];
}

/// Compares gradients with central differences at some elements of each argument.
void expect_derivatives(const Program &program, const Program &gradient, std::vector<Array> inputs, std::mt19937 &random) {
    const std::vector<Array> gradients = interpret(gradient, inputs, rules(), Mode::real);
    constexpr double step = 1e-5;
    for (size_t i = 0; i < inputs.size(); i++) {
        for (int sample = 0; sample < 3; sample++) {
            double &element = inputs[i].data[random() % inputs[i].data.size()];
            const size_t index = &element - inputs[i].data.data();
            const double at = element;
            element = at + step;
            const double after = loss_of(program, inputs);
            element = at - step;
            const double before = loss_of(program, inputs);
            element = at;
            EXPECT_NEAR(gradients[i].data[index], (after - before) / (2 * step), 1e-6) << program.value_name(program.arguments[i].value);
        }
    }
}

/// The body of the gradient of `text` by all its arguments, simplified.
std::string gradient_text(const std::string &text) { return body(simplify(gradient_of(typed(text)), rules())); }

} // namespace

TEST(transforms, gradient_equals_central_differences) {
    for (uint32_t seed = 1; seed <= 25; seed++) {
        std::mt19937 random(seed);
        const Program program = random_program(random, 12);
        const Program gradient = gradient_of(program);
        SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + to_string(program));
        expect_derivatives(program, gradient, random_inputs(program, random), random);
        if (HasFailure()) return;
    }
}

TEST(transforms, gradient_of_a_gradient) {
    const Program program = typed("(x: f32[3], w: f32[3, 3]) -> (loss: f32[]) {\n y = dot_general(x, w) {contract: [[0], [0]]}\n"
                                  " z = tanh(y)\n g = gelu(z)\n q = mul(g, x)\n loss = reduce_sum(q) {axes: [0]}\n}");
    Program first = program;
    const ValueId gradient = append_gradient(first, rules(), first.results[0].value, {first.arguments[1].value})[0];
    Builder builder(rules(), first);
    const ValueId squares = builder.add_one("mul", {gradient, gradient});
    first.results = {{"norm", builder.add_one("reduce_sum", {squares}, {{"axes", to_attribute(std::vector<int64_t>{0, 1})}})}};
    std::mt19937 random(1);
    expect_derivatives(first, gradient_of(first), random_inputs(first, random), random);
}

TEST(transforms, gradient_of_a_matmul_needs_no_transpose) {
    for (const char *operands : {"(x: f32[b, 4], w: f32[4, 3]) -> (loss: f32[]) {\n z = dot_general(x, w) {contract: [[1], [0]]}\n",
                                 "(x: f32[b, 4], w: f32[3, 4]) -> (loss: f32[]) {\n z = dot_general(x, w) {contract: [[1], [1]]}\n",
                                 "(x: f32[4, b], w: f32[4, 3]) -> (loss: f32[]) {\n z = dot_general(x, w) {contract: [[0], [0]]}\n",
                                 "(x: f32[n, b, 4], w: f32[n, 4, 3]) -> (loss: f32[]) {\n"
                                 " y = dot_general(x, w) {contract: [[2], [1]], batch: [[0], [0]]}\n z = reduce_sum(y) {axes: [0]}\n"}) {
        const std::string text = gradient_text(std::string(operands) + " q = mul(z, z)\n loss = reduce_sum(q) {axes: [0, 1]}\n}");
        EXPECT_EQ(text.find("transpose"), std::string::npos) << text;
    }
}

TEST(transforms, gradient_marks_cotangents) {
    EXPECT_EQ(gradient_text("(x: f32[4]) -> (loss: f32[]) {\n y = exp(x)\n loss = reduce_sum(y) {axes: [0]}\n}"), "y = exp(x) : f32[4]\n");
    EXPECT_EQ(gradient_text("(x: f32[4], y: f32[4]) -> (loss: f32[]) {\n z = sin(x)\n p = mul(z, y)\n loss = reduce_sum(p) {axes: [0]}\n}"),
              "z = sin(x) : f32[4]\ncos = cos(x) : f32[4] cotangent\nmul2 = mul(y, cos) : f32[4] cotangent\n");
}

TEST(transforms, gradient_is_zero_where_nothing_flows) {
    EXPECT_EQ(gradient_text(
                  "(x: f32[2], y: f32[]) -> (loss: f32[]) {\n s = stop_gradient(x)\n l = reduce_sum(s) {axes: [0]}\n loss = add(l, y)\n}"),
              "constant = constant() {dtype: f32, value: 1.0} : f32[] cotangent\n"
              "constant1 = constant() {dtype: f32, value: 0.0} : f32[] cotangent\n"
              "broadcast_in_dim1 = broadcast_in_dim(constant1) {dims: [], shape: [2]} : f32[2] cotangent\n");
}

TEST(transforms, a_rule_refuses_a_gradient_by_operand) {
    const std::string text = "(a: f32[2], x: f32[2]) -> (loss: f32[]) {\n y = igamma(a, x)\n loss = reduce_sum(y) {axes: [0]}\n}";
    const std::string message = error_of([&] { gradient_text(text); });
    EXPECT_TRUE(message.ends_with("igamma.grad.a: this operand has no gradient, but the loss depends on it: 'a'. Apply "
                                  "stop_gradient to the operand"))
        << message;
}

TEST(transforms, gradient_checks) {
    EXPECT_EQ(error_of([] { gradient_of(typed("(x: f32[2]) -> (loss: f32[2]) {\n loss = exp(x)\n}")); }),
              "grad.of: the loss must be a float scalar, got loss of type f32[2]. Reduce it with reduce_sum or mean first");
}

} // namespace scalide
