#include "transforms/numerics/policy_match.h"
#include "ir/text.h"
#include "support.h"
#include "transforms/passes.h"
#include <gtest/gtest.h>

namespace scalide {

namespace {

const std::string mlp = "(x: f32[b, 8], head.w: f32[8, 8] inout, head.bias: f32[8] inout, tokens: i32[b])"
                        " -> (y: f32[b, 8], head.w = v, head.bias = c) {\n"
                        " scope \"mlp/0\" {\n h = dot_general(x, head.w) {contract: [[1], [0]]}\n y = tanh(h)\n }\n"
                        " v = mul(head.w, 0.5)\n c = mul(head.bias, 0.5)\n}";

/// What is said of a policy of these rows, the first on line 2, in the program.
std::string said(const std::string &rows, const std::string &program = mlp) {
    return error_of([&] { assign_numerics(typed(program), rules(), parse_policy("{policy: p, rules: [\n" + rows + "]}", "p.yaml")); });
}

/// The text of the program where operands in this role have become bf16.
std::string with_role(const std::string &role, const std::string &program) {
    const Policy policy =
        parse_policy("{policy: p, rules: [{operand: " + role + ", insert: [{convert: bf16}], optional: true}]}", "p.yaml");
    return body(assign_numerics(typed(program), rules(), policy));
}

/// The arguments that are weights: those that a row {argument: weight} makes f16.
std::string weights(const std::string &program) {
    const Policy policy = parse_policy("{policy: p, rules: [{argument: weight, store: f16, optional: true},"
                                       " {result: weight, store: f16, optional: true}]}",
                                       "p.yaml");
    const Program made = assign_numerics(typed(program), rules(), policy);
    std::string names;
    for (const Argument &argument : made.arguments)
        if (made.type(argument.value).dtype == Dtype::f16) names += (names.empty() ? "" : " ") + made.value_name(argument.value);
    return names;
}

} // namespace

TEST(transforms, globs_match_scopes_and_names) {
    const std::vector<std::pair<const char *, const char *>> fitting = {{"", "mlp/0"},
                                                                        {"**", "mlp/0"},
                                                                        {"mlp/*", "mlp/0"},
                                                                        {"mlp/**", "mlp/0/a"},
                                                                        {"mlp/**", "mlp"},
                                                                        {"**/amp", "a/b/amp"},
                                                                        {"**/amp", "amp"},
                                                                        {"**/amp/**", "amp"},
                                                                        {"**/amp/**", "a/amp/b"},
                                                                        {"a/**/b", "a/b"},
                                                                        {"a/**/b", "a/c/d/b"},
                                                                        {"**amp**", "xampy"},
                                                                        {"**amp**", "a/xampy/b"},
                                                                        {"params.**", "params.w"},
                                                                        {"params.**", "params"},
                                                                        {"*.bias", "l0.bias"},
                                                                        {"**.bias", "bias"},
                                                                        {"**.bias", "a.b.bias"},
                                                                        {"w*", "w1"},
                                                                        {"**a*a*a*b", "aaaaaaaaaaaaab"}};
    for (const auto &[glob, name] : fitting) EXPECT_TRUE(glob_matches(glob, name)) << glob << " " << name;
    const std::vector<std::pair<const char *, const char *>> others = {
        {"mlp/*", "mlp/0/a"}, {"mlp", "mlp/0"},       {"head*", "body"},        {"**/amp/**", "xamp"}, {"**/amp", "camp"},
        {"*.bias", "bias"},   {"*.bias", "a.b.bias"}, {"params.**", "params2"}, {"w*", "w.1"},         {"**a*a*a*b", "aaaaaaaaaaaaaa"}};
    for (const auto &[glob, name] : others) EXPECT_FALSE(glob_matches(glob, name)) << glob << " " << name;
}

TEST(transforms, rows_that_match_nothing_are_errors) {
    const std::string start = "p.yaml:2: this rule matches nothing: ", has_no = start + "program 'p' has no ",
                      end = "If the rule may match nothing, add 'optional: true'";
    EXPECT_EQ(said("{argument: head.w9, store: f16}"),
              has_no + "float argument 'head.w9'. Did you mean 'head.w'? Arguments: head.bias, head.w, x. " + end);
    EXPECT_EQ(said("{argument: tokens, store: f16}"), has_no + "float argument 'tokens'. Arguments: head.bias, head.w, x. " + end);
    EXPECT_EQ(said("{argument: \"haed.**\", store: f16}"),
              has_no + "float argument 'haed.**'. Did you mean 'head'? Arguments: head.bias, head.w, x. " + end);
    EXPECT_EQ(said("{op: [sqrt, exp], result: any, store: f16}"),
              has_no + "operator on floats 'sqrt, exp'. Operators: broadcast_in_dim, constant, dot_general, mul, tanh. " + end);
    EXPECT_EQ(said("{scope: \"mpl/**\", result: any, store: f16}"),
              has_no + "float array in scope 'mpl/**'. Did you mean 'mlp'? Scopes: mlp/0. " + end);
    EXPECT_EQ(said("{operand: cotangent, insert: [{convert: f16}]}"),
              has_no + "float operand 'cotangent'. Operands: lhs, rhs, x, y. " + end);
    EXPECT_EQ(said("{argument: any, size_below: 8, store: f16}"), has_no + "float array with a static size below '8'. " + end);
    EXPECT_EQ(said("{op: mul, scope: \"mlp/**\", result: any, store: f16}"),
              start + "no float array of program 'p' meets all its conditions (result, op, scope). " + end);
    EXPECT_EQ(said("{op: tanh, result: any, size_below: 4, store: f16}"),
              start + "no float array of program 'p' meets all its conditions (result, op, size_below). " + end);
    EXPECT_EQ(said("{argument: head.w9, store: f16, optional: true}"), "no error");
}

TEST(transforms, rows_that_are_hidden_are_errors) {
    const std::string rows = "{argument: inout, store: f16},\n{result: inout, store: f16},\n{argument: \"head.*\", store: bf16";
    EXPECT_EQ(said(rows + "}"),
              "p.yaml:4: this rule has no effect: line 2 already matches everything that it matches. Move it above line 2, "
              "delete it, or add 'optional: true'");
    EXPECT_EQ(said(rows + ", optional: true}"), "no error");
    EXPECT_EQ(said("{argument: head.w, store: f16},\n{argument: inout, store: f16},\n{result: inout, store: f16}"), "no error");
}

TEST(transforms, a_row_may_hide_what_it_inherits) {
    Policy policy = parse_policy("{policy: p, rules: [{argument: x, store: f16}, {argument: x, store: bf16}]}", "p.yaml");
    policy.rules[1].inherited = true;
    EXPECT_EQ(error_of([&] { assign_numerics(typed(mlp), rules(), policy); }), "no error");
}

/// A step of two layers, the second one in the scope head, with intermediates that are narrower.
std::string kept(const std::string &glob) {
    const std::string step = "(x: f32[16, 8], w: f32[8, 8], router.w: f32[8, 8]) -> (y: f32[16, 8], gw: f32[8, 8], gr: f32[8, 8]) {\n"
                             " scope \"body\" {\n a = dot_general(x, w) {contract: [[1], [0]]}\n h = tanh(a)\n }\n"
                             " scope \"head\" {\n y = dot_general(h, router.w) {contract: [[1], [0]]}\n }\n"
                             " c = exp(y) : f32[16, 8] cotangent\n"
                             " scope \"head\" {\n gr = dot_general(h, c) {contract: [[0], [0]]} : f32[8, 8] cotangent\n }\n"
                             " scope \"head\" {\n d = dot_general(c, router.w) {contract: [[1], [1]]} : f32[16, 8] cotangent\n }\n"
                             " scope \"body\" {\n gw = dot_general(x, d) {contract: [[0], [0]]} : f32[8, 8] cotangent\n }\n}";
    const std::string rows = "{op: dot_general, operand: any, store: bf16, optional: true}, {argument: any, store: f16, optional: true}";
    const Policy policy = parse_policy("{policy: p, intermediates: bf16, rules: [{keep: \"" + glob + "\"}, " + rows + "]}", "p.yaml");
    const Program made = assign_numerics(typed(step), rules(), policy);
    std::string wide;
    for (const Node &node : made.nodes)
        if (node.attributes.contains("wide")) wide += (wide.empty() ? "" : " ") + made.value_name(node.results[0]);
    for (const Argument &argument : made.arguments)
        if (made.type(argument.value).dtype == Dtype::f32) wide += (wide.empty() ? "" : " ") + made.value_name(argument.value);
    for (const Node &node : made.nodes) {
        if (!node.attributes.contains("wide")) continue;
        for (const ValueId operand : node.operands) EXPECT_EQ(made.value_name(operand).find("bf16"), std::string::npos) << glob;
    }
    return wide;
}

TEST(transforms, a_row_keeps_a_scope_or_an_argument) {
    EXPECT_EQ(kept("router.*"), "y gr d router.w") << "its products, and those of its gradient";
    EXPECT_EQ(kept("head/**"), "y gr d");
    EXPECT_EQ(kept("w"), "a gw w");
    EXPECT_EQ(kept("**"), "a y gr d gw x w router.w");
    EXPECT_EQ(said("{keep: \"haed/**\"}"),
              "p.yaml:2: this rule matches nothing: program 'p' has no scope or float argument 'haed/**'. Did you mean 'head'? "
              "Scopes and arguments: head.bias, head.w, mlp/0, x. If the rule may match nothing, add 'optional: true'");
    EXPECT_EQ(said("{argument: head.w, store: f16},\n{result: head.w, store: f16},\n{keep: head.w}"), "no error") << "its product";
    EXPECT_EQ(
        said("{keep: x},\n{keep: \"*\"},\n{keep: x}"),
        "p.yaml:4: this rule has no effect: line 2 already matches everything that it matches. Move it above line 2, delete it, or add "
        "'optional: true'");
    EXPECT_EQ(said("{keep: x, store: f16}"),
              "p.yaml:2: 'store' cannot be used with 'keep'. 'keep' leaves a whole scope or argument unchanged");
}

TEST(transforms, rows_reach_operators_by_another_name) {
    const std::string product = "(x: f32[4, 8], w: f32[8, 8]) -> (y: f32[4, 8]) {\n y = dot(x, w)\n}";
    EXPECT_EQ(said("{op: dot_general, operand: any, insert: [{convert: bf16}]}", product), "no error");
    EXPECT_NE(said("{op: batch_matmul, operand: any, insert: [{convert: bf16}]}", product), "no error");
}

TEST(transforms, weights_are_what_contractions_multiply_data_by) {
    EXPECT_EQ(weights("(x: f32[4, 8], w1: f32[8, 8], c: f32[8], w2: f32[8, 2]) -> (y: f32[4, 2]) {\n a = dot(x, w1)\n"
                      " r = broadcast_in_dim(c) {shape: [4, 8], dims: [1]}\n b = add(a, r)\n h = tanh(b)\n y = dot(h, w2)\n}"),
              "w1 w2")
        << "inference, biases are none";
    EXPECT_EQ(weights("(w: f32[8, 8], x: f32[8, b]) -> (y: f32[8, b]) {\n y = dot(w, x)\n}"), "w") << "data has the batch";
    EXPECT_EQ(weights("(w: f32[2, 8], x: f32[4, 8]) -> (y: f32[2, 4]) {\n h = tanh(x)\n t = transpose(h) {permutation: [1, 0]}\n"
                      " q = convert_element_type(w) {dtype: bf16}\n u = convert_element_type(q) {dtype: f32}\n y = dot(u, t)\n}"),
              "w")
        << "moved and converted, on the left";
    EXPECT_EQ(weights("(x: f32[4, 8], wq: f32[8, 8], wk: f32[8, 8]) -> (s: f32[4, 4]) {\n q = dot(x, wq)\n k = dot(x, wk)\n"
                      " s = dot_general(q, k) {contract: [[1], [1]]}\n}"),
              "wq wk")
        << "what attention multiplies is computed";
    EXPECT_EQ(weights("(x: f32[b, 3, 7, 5], k: f32[4, 3, 3, 2]) -> (y: f32[b, 4, 5, 4]) {\n y = conv(x, k)\n}"), "k");
    EXPECT_EQ(weights("(x: f32[4, 8], cache: f32[4, 8] inout, w: f32[8, 8]) -> (y: f32[4, 4], cache = d) {\n q = dot(x, w)\n"
                      " d = add(cache, q)\n y = dot_general(q, d) {contract: [[1], [1]]}\n}"),
              "w")
        << "a state is none because it is inout";
}

TEST(transforms, weights_of_a_training_step_need_no_donation) {
    // The gradient of the first layer's weight is made of the data, wherever the data stands.
    const auto step = [](const std::string &inout, const std::string &result) {
        return "(w: f32[8, 8]" + inout + ", x: f32[8, 4], t: f32[8, 4]) -> (" + result +
               ") {\n y = dot(w, x)\n d = sub(y, t) : f32[8, 4] cotangent\n"
               " g = dot_general(d, x) {contract: [[1], [1]]} : f32[8, 8] cotangent\n v = sub(w, g) : f32[8, 8]\n}";
    };
    EXPECT_EQ(weights(step(" inout", "w = v")), "w");
    EXPECT_EQ(weights(step("", "v: f32[8, 8]")), "w");
}

TEST(transforms, operands_have_roles) {
    const std::string step = "(x: f32[4, 8], w: f32[8, 8]) -> (l: f32[4, 8], g: f32[4, 8], v: f32[8, 8]) {\n y = dot(x, w)\n l = tanh(y)\n"
                             " d = mul(l, 2.0) : f32[4, 8] cotangent\n"
                             " g = dot_general(d, w) {contract: [[1], [1]]} : f32[4, 8] cotangent\n"
                             " v = dot_general(x, d) {contract: [[0], [0]]} : f32[8, 8] cotangent\n}";
    const auto converted = [&](const std::string &role) {
        std::string names;
        for (const char *name : {"x", "w", "y", "l", "d"})
            if (with_role(role, step).find(std::string(name) + ".bf16 = ") != std::string::npos) names += name;
        return names;
    };
    EXPECT_EQ(converted("weight"), "w");
    EXPECT_EQ(converted("activation"), "xyl");
    EXPECT_EQ(converted("primal"), "xwyl");
    EXPECT_EQ(converted("cotangent"), "d");
    EXPECT_EQ(converted("any"), "xwyld");
    EXPECT_EQ(converted("rhs"), "wd");
}

} // namespace scalide
