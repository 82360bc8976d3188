#include "transforms/pipeline.h"
#include "ir/text.h"
#include "support.h"
#include "support/programs/random_program.h"
#include "support/rounding_errors/running_error.h"
#include <gtest/gtest.h>

namespace scalide {

namespace {

std::string compile_error(const std::string &text) {
    return error_of([&] { compile(parse_program(text, "t.scl"), rules(), {}); });
}

const std::string negation = "(x: f32[2] scaled) -> (y: f32[2] scaled) {\n  y = neg(x)\n}\n";

} // namespace

TEST(transforms, compile_runs_all_passes_in_order) {
    std::vector<std::string> passes;
    CompileOptions options;
    options.after_pass = [&](const std::string &pass, const Program &) { passes.push_back(pass); };
    const Program program = parse_program("program p(x: f32[b, 8], c: f32[8, 8] constant) -> (y: f32[b, 8]) {\n"
                                          "  a = exp(c)\n  y = dot(x, a)\n}\n",
                                          "t.scl");
    options.splits_constants = true;
    options.choose_panels = [](const Program &) { return std::nullopt; };
    run_passes(program, rules(), options, Stage::forms);
    const auto [repeated, end] = std::ranges::unique(passes); // a pass makes several programs
    passes.erase(repeated, end);
    std::vector<std::string> expected = pass_names();
    std::erase(expected, "card_forms"); // on GPUs
    EXPECT_EQ(passes, expected);
}

TEST(transforms, compile_checks_settings) {
    EXPECT_EQ(compile_error("program p {strategy: max, rounding: nearest}" + negation), "no error");
    EXPECT_EQ(compile_error("program p {strategy: l3}" + negation), "p.strategy: must be one of l2, max, unit, got l3");
    EXPECT_EQ(compile_error("program p {rounding: sideways}" + negation),
              "p.rounding: must be one of down, up, nearest, none, stochastic, got sideways");
    EXPECT_EQ(compile_error("program p {arithmetic: exact}" + negation), "no error");
    EXPECT_EQ(compile_error("program p {arithmetic: fast}" + negation), "p.arithmetic: must be one of device, exact, got fast");
}

/// It is part of the text of a kernel, and so of its key in the cache.
TEST(transforms, the_arithmetic_of_a_policy_reaches_each_kernel) {
    const Program program = parse_program("program p(x: f32[64, 64]) -> (y: f32[64, 64]) {\n  y = softmax(x) {axes: [1]}\n}\n", "t.scl");
    for (const bool is_exact : {true, false}) {
        CompileOptions options;
        options.policy.exact_arithmetic = is_exact;
        const Program fused = compile(program, rules(), options);
        EXPECT_FALSE(fused.programs.empty());
        for (const Program &kernel : fused.programs) EXPECT_EQ(to_string(kernel).find("arithmetic: exact") != std::string::npos, is_exact);
    }
}

/// Calls and gradients by name mean what their bodies mean.
TEST(transforms, inline_calls_resolves_gradients) {
    const std::string text =
        "program square(x: f32[3]) -> (s: f32[]) {\n  scope \"inner\" {\n    y = mul(x, x)\n  }\n  s = reduce_sum(y) {axes: [0]}\n}\n"
        "program p(x: f32[3]) -> (a: f32[], b: f32[], g: f32[3], h: f32[3]) {\n  scope \"outer\" {\n"
        "    a = call(x) {program: square}\n    b, g = value_and_grad(x) {program: square, wrt: [x]}\n  }\n"
        "  h = grad(g) {program: square, wrt: [x]}\n}\n";
    const Program inlined = inline_calls(infer_types(parse_program(text, "t.scl"), rules()), rules());
    EXPECT_TRUE(inlined.programs.empty());
    EXPECT_EQ(inlined.nodes[0].scope, "outer/inner");
    const auto outputs = interpret(inlined, {{Dtype::f32, {3}, {1, 2, -3}}}, rules(), Mode::real);
    EXPECT_EQ(outputs[0].data[0], 14);
    EXPECT_EQ(outputs[1].data[0], 14);
    EXPECT_EQ(outputs[2].data, (std::vector<double>{2, 4, -6}));
    EXPECT_EQ(outputs[3].data, (std::vector<double>{4, 8, -12}));
}

/// A gradient by name of a program in other symbols.
TEST(transforms, inline_calls_binds_symbols) {
    const std::string text =
        "program norm(x: f32[n, m]) -> (s: f32[]) {\n  y = mul(x, x)\n  t = mean(y) {axes: [0]}\n  s = reduce_sum(t) {axes: [0]}\n}\n"
        "program p(x: f32[b, 3], y: f32[2, b]) -> (g: f32[b, 3], h: f32[2, b]) {\n"
        "  g = grad(x) {program: norm, wrt: [x]}\n  h = grad(y) {program: norm, wrt: [x]}\n}\n";
    const Program inlined = inline_calls(infer_types(parse_program(text, "t.scl"), rules()), rules());
    const auto outputs =
        interpret(inlined, {{Dtype::f32, {2, 3}, {1, 2, 3, 4, 5, 6}}, {Dtype::f32, {2, 2}, {1, 2, 3, 4}}}, rules(), Mode::real);
    EXPECT_EQ(outputs[0].data, (std::vector<double>{1, 2, 3, 4, 5, 6}));
    EXPECT_EQ(outputs[1].data, (std::vector<double>{1, 2, 3, 4}));
}

/// The loop of a gradient computes primal values again. Policies give their operands the formats of primal values.
TEST(transforms, inline_calls_keeps_roles_in_loops) {
    const std::string text = "program p(c: f32[2], xs: f32[9, 2]) -> (r: f32[2]) {\n  r = scan(c, xs) {length: 9} cotangent with\n"
                             "    body(c: f32[2] inout, x: f32[2] each) -> (c = after) {\n"
                             "      again = tanh(x)\n      after = mul(c, again) cotangent\n    }\n}\n";
    const Program inlined = inline_calls(infer_types(parse_program(text, "t.scl"), rules()), rules(), Unroll::none);
    const Node &loop = inlined.nodes[0];
    EXPECT_EQ(loop.role, Role::cotangent);
    EXPECT_EQ(loop.regions[0]->nodes[0].role, Role::primal);
    EXPECT_EQ(loop.regions[0]->nodes[1].role, Role::cotangent);
}

/// A cotangent goes through the sub-program of map_on_backward, once for each differentiation; a wrong sub-program is refused.
TEST(transforms, inline_calls_maps_cotangents) {
    const std::string text = "program clip(ct: f32[n]) -> (y: f32[n]) {\n  y = clamp(-1, ct, 1)\n}\n"
                             "program sum(ct: f32[n]) -> (y: f32[]) {\n  y = reduce_sum(ct) {axes: [0]}\n}\n"
                             "program loss(x: f32[n]) -> (s: f32[]) {\n  y = map_on_backward(x) {program: clip}\n  z = mul(y, y)\n"
                             "  s = reduce_sum(z) {axes: [0]}\n}\n"
                             "program p(x: f32[3]) -> (s: f32[], g: f32[3]) {\n  s, g = value_and_grad(x) {program: loss, wrt: [x]}\n}\n";
    const Program inlined = inline_calls(infer_types(parse_program(text, "t.scl"), rules()), rules());
    EXPECT_TRUE(inlined.programs.empty());
    const auto outputs = interpret(inlined, {{Dtype::f32, {3}, {0.25, 2, -3}}}, rules(), Mode::real);
    EXPECT_EQ(outputs[0].data[0], 0.0625 + 4 + 9);
    EXPECT_EQ(outputs[1].data, (std::vector<double>{0.5, 1, -1}));
    std::string wrong = text;
    wrong.replace(wrong.find("program: clip"), 13, "program: sum");
    EXPECT_EQ(error_of([&] { compile(parse_program(wrong, "t.scl"), rules(), {}); }),
              "t.scl:8:3: map_on_backward.program: must return one value of type f32[3], got sum");
}

/// A program of kernels means what the program means.
TEST(transforms, compile_agrees) {
    for (uint32_t seed = 1; seed <= 10; seed++) {
        std::mt19937 random(seed);
        const Program program = random_program(random, 10);
        SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + to_string(program));
        const std::vector<Array> inputs = random_inputs(program, random);
        const auto expected = interpret_with_errors(program, inputs, rules(), Mode::real);
        ASSERT_EQ(difference(interpret(compile(program, rules(), {}), inputs, rules(), Mode::real), expected), "");
    }
}

} // namespace scalide
