#include "interpret/interpret.h"
#include "ir/text.h"
#include "support.h"
#include "transforms/analysis/passes.h"
#include "transforms/numerics/policy_match.h"
#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>

// Rules with `compute`, such as those of amp_f16.

namespace scalide {

namespace {

Policy amp(const std::string &rows = "") {
    const std::string policies = std::string(SCALIDE_RULES_DIR) + "/policies";
    return rows.empty() ? load_policy(policies + "/amp_f16.yaml")
                        : parse_policy("policy: own\nextends: amp_f16\nrules:\n" + rows, "own.yaml", policies);
}

Program assigned(const std::string &text, const Policy &policy = amp()) { return assign_numerics(typed(text), rules(), policy); }

/// The nodes that round a value to the dtype, as the names of the values.
std::vector<std::string> rounded_to(const Program &program, Dtype dtype) {
    std::vector<std::string> names;
    for (const Node &node : program.nodes)
        if (node.op == "convert_element_type" && program.type(node.results[0]).dtype == dtype)
            names.push_back(program.value_name(node.operands[0]));
    return names;
}

double number(const Program &program, const std::vector<double> &inputs) {
    std::vector<Array> arrays;
    for (size_t i = 0; i < inputs.size(); i++) arrays.push_back({program.type(program.arguments[i].value).dtype, {}, {inputs[i]}});
    return interpret(program, arrays, rules(), Mode::stored)[0].data[0];
}

using Words = std::vector<std::string>;

} // namespace

TEST(transforms, compute_rounds_operands_and_results) {
    const Program program = assigned("(x: f32[], y: f32[]) -> (z: f32[]) {\n s = add(x, y)\n z = mul(s, y)\n}");
    EXPECT_EQ(rounded_to(program, Dtype::f16), (Words{"x", "y", "s"}));
    EXPECT_EQ(number(program, {2048, 1.25}), 2562.5);     // 2048 + 1.25 is 2050 in f16, and the product is f32
    EXPECT_EQ(number(program, {60000, 60000}), INFINITY); // an overflow is not hidden
}

/// 1 + 2^-12 needs 13 bits.
TEST(transforms, compute_keeps_wide_results_of_a_narrow_program) {
    const std::string text = "(x: f16[], y: f16[]) -> (z: f32[]) {\n p = mul(x, y)\n OP\n}";
    const auto with = [&](const std::string &op) { return std::string(text).replace(text.find("OP"), 2, op); };
    const double x = 1 + std::ldexp(1, -10), exact = x * x;
    EXPECT_EQ(number(assigned(with("e = log(p)\n z = convert_element_type(e) {dtype: f32}")), {x, x}),
              round_to(Dtype::f16, std::log(exact)));
    EXPECT_EQ(number(assigned(with("z = convert_element_type(p) {dtype: f32}")), {x, x}), round_to(Dtype::f16, exact))
        << "as the program says";
    EXPECT_EQ(number(assigned(with("e = neg(p)\n z = convert_element_type(e) {dtype: f32}")), {x, x}), -round_to(Dtype::f16, exact));
    EXPECT_EQ(
        number(assigned(with("e = neg(p)\n z = convert_element_type(e) {dtype: f32}"), amp("  - {op: neg, operands: any, compute: f32}\n")),
               {x, x}),
        -round_to(Dtype::f16, exact))
        << "the program converts neg from f16";
}

/// As in jaxamp, the dtypes of the program count, also for a value that a rule made in another dtype.
TEST(transforms, compute_in_the_widest_dtype) {
    const Policy policy = amp("  - {op: max, operands: any, compute: widest}\n");
    const std::string narrow = "(x: f16[], y: f16[]) -> (z: f16[]) {\n p = mul(x, y)\n m = max(p, x)\n z = log(m)\n}";
    EXPECT_EQ(rounded_to(assigned(narrow, policy), Dtype::f16), (Words{"p", "m", "z"}));
    const std::string wide = "(x: f32[], y: f32[]) -> (z: f32[]) {\n p = add(x, y)\n z = max(p, x)\n}";
    EXPECT_EQ(rounded_to(assigned(wide, policy), Dtype::f16), (Words{"x", "y", "p"}));
}

/// jaxamp looks scopes up before operators, from the outermost scope. The order of the rules does not matter.
TEST(transforms, compute_of_the_outermost_scope_decides) {
    const auto roundings = [&](const std::string &outer, const std::string &inner) {
        const std::string rows = "  - {op: tanh, operands: any, compute: f16}\n"
                                 "  - {scope: \"**/low/**\", operands: any, compute: bf16}\n"
                                 "  - {scope: \"**/high/**\", operands: any, compute: original, optional: true}\n";
        const Program program = assigned("(x: f32[]) -> (z: f32[], w: f32[], y: f32[]) {\n scope \"" + outer + "\" {\n  scope \"" + inner +
                                             "\" {\n   z = tanh(x)\n  }\n }\n scope \"low\" {\n  w = tanh(x)\n }\n y = tanh(x)\n}",
                                         amp(rows));
        const Node *maker = nullptr;
        for (const Node &node : program.nodes)
            if (node.op == "tanh" && node.scope == outer + "/" + inner) maker = &node;
        const ValueId operand = maker->operands[0];
        for (const Node &node : program.nodes)
            if (!node.results.empty() && node.results[0] == operand) return std::string(to_string(program.type(node.operands[0]).dtype));
        return std::string("f32");
    };
    EXPECT_EQ(roundings("high", "low"), "f32");
    EXPECT_EQ(roundings("low", "high"), "bf16");
    EXPECT_EQ(roundings("low", "amp_stop"), "bf16");
    EXPECT_EQ(roundings("amp_stop", "low"), "f32");
    EXPECT_EQ(roundings("a", "b"), "f16") << "no scope, so the operator decides";
}

TEST(transforms, depth_of_a_scope_that_a_glob_matches) {
    EXPECT_EQ(matched_depth("**/amp_stop/**", "amp_stop"), 1);
    EXPECT_EQ(matched_depth("**/amp_stop/**", "amp_stop/a/b"), 1);
    EXPECT_EQ(matched_depth("**/amp_stop/**", "a/b/amp_stop/c"), 3);
    EXPECT_EQ(matched_depth("a/b", "a/b"), 2);
}

/// w - 0.1 * gradient in f16 loses steps below w * 2^-11.
TEST(transforms, compute_does_not_reach_updates) {
    const std::string step = "(x: f32[], w: f32[] inout) -> (loss: f32[], w = v) {\n p = mul(x, w)\n s = sub(p, x)\n loss = mul(s, s)\n"
                             " g = mul(s, x) cotangent\n scaled = mul(g, 0.001)\n v = sub(w, scaled)\n}";
    EXPECT_EQ(rounded_to(assigned(step), Dtype::f16), (Words{"p", "x", "s"}));
    const std::string statistics = "(x: f32[], mean: f32[] inout) -> (y: f32[], mean = new) {\n y = add(x, 1)\n d = sub(x, mean)\n"
                                   " part = mul(d, 0.01)\n new = add(mean, part)\n}";
    const Words rounded = rounded_to(assigned(statistics), Dtype::f16);
    EXPECT_EQ(std::ranges::count(rounded, "mean") + std::ranges::count(rounded, "d") + std::ranges::count(rounded, "part"), 0);
    EXPECT_EQ(std::ranges::count(rounded, "y"), 1);
}

TEST(transforms, compute_leaves_sums_of_gradients_alone) {
    Program program = typed("(x: f32[]) -> (y: f32[]) {\n a = sin(x)\n b = cos(x)\n y = mul(a, b)\n}");
    program.results[0].value = append_gradient(program, rules(), program.results[0].value, {program.arguments[0].value})[0];
    EXPECT_EQ(rounded_to(assign_numerics(program, rules(), amp()), Dtype::f16), Words{});
}

TEST(transforms, rules_for_operands_come_before_compute) {
    const Program program =
        assigned("(x: f32[], y: f32[]) -> (z: f32[]) {\n z = add(x, y)\n}", amp("  - {op: add, operand: x, insert: [{convert: bf16}]}\n"));
    EXPECT_EQ(rounded_to(program, Dtype::bf16), Words{"x"});
    EXPECT_EQ(rounded_to(program, Dtype::f16), (Words{"y", "z"}));
}

} // namespace scalide
