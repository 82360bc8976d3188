#include "transforms/numerics/policy_match.h"
#include "ir/text.h"
#include "support.h"
#include "transforms/analysis/passes.h"
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

/// A training step of three layers.
const std::string network =
    "(x: f32[4, 8], w1: f32[8, 16], w2: f32[16, 16], w3: f32[16, 5]) -> (y: f32[4, 5], g3: f32[16, 5], g2: f32[16, 16], g1: f32[8, 16]) {\n"
    " a = dot_general(x, w1) {contract: [[1], [0]]}\n h = tanh(a)\n"
    " b = dot_general(h, w2) {contract: [[1], [0]]}\n i = tanh(b)\n"
    " y = dot_general(i, w3) {contract: [[1], [0]]}\n c = exp(y) : f32[4, 5] cotangent\n"
    " g3 = dot_general(i, c) {contract: [[0], [0]]} : f32[16, 5] cotangent\n"
    " d = dot_general(c, w3) {contract: [[1], [1]]} : f32[4, 16] cotangent\n e = mul(d, i) : f32[4, 16] cotangent\n"
    " g2 = dot_general(h, e) {contract: [[0], [0]]} : f32[16, 16] cotangent\n"
    " f = dot_general(e, w2) {contract: [[1], [1]]} : f32[4, 16] cotangent\n k = mul(f, h) : f32[4, 16] cotangent\n"
    " g1 = dot_general(x, k) {contract: [[0], [0]]} : f32[8, 16] cotangent\n}";

/// The matmuls that a rule with these conditions chooses. It has no action, so it leaves them wide.
std::string chosen(const std::string &conditions, const std::string &program = network) {
    const Policy policy =
        parse_policy("{policy: p, intermediates: bf16, rules: [{op: dot_general, operand: any, " + conditions + "}]}", "p.yaml");
    const Program made = assign_numerics(typed(program), rules(), policy);
    std::string names;
    for (const Node &node : made.nodes)
        if (node.attributes.contains("wide")) names += (names.empty() ? "" : " ") + made.value_name(node.results[0]);
    return names;
}

TEST(transforms, a_row_chooses_layers_with_their_gradients) {
    EXPECT_EQ(chosen("layer: first"), "a g1");
    EXPECT_EQ(chosen("layer: last"), "y g3 d");
    EXPECT_EQ(chosen("layer: [first, last]"), "a y g3 d g1");
    const std::string attention = "(x: f32[4, 8], wq: f32[8, 8], wk: f32[8, 8], t: f32[2, 8]) -> (s: f32[4, 4], y: f32[2, 8]) {\n"
                                  " m = transpose(x) {permutation: [1, 0]}\n l = sin(m)\n"
                                  " q = dot_general(l, wq) {contract: [[0], [0]]}\n k = dot_general(x, wk) {contract: [[1], [0]]}\n"
                                  " s = dot_general(q, k) {contract: [[1], [1]]}\n y = dot_general(t, wq) {contract: [[1], [0]]}\n}";
    EXPECT_EQ(chosen("layer: first", attention), "q k y") << "through movement and elementwise operators; several layers are first";
    EXPECT_EQ(chosen("layer: last", attention), "s y") << "a program of one layer has it first and last";
    const std::string table =
        "(x: f32[4, 8], w: f32[8, 8]) -> (y: f32[4, 8]) {\n o = constant() {value: 1}\n c = broadcast_in_dim(o) {shape: [4, 4], dims: []}\n"
        " s = dot_general(c, x) {contract: [[1], [0]]}\n y = dot_general(s, w) {contract: [[1], [0]]}\n}";
    EXPECT_EQ(chosen("layer: first", table), "y") << "a sum of rows by a constant is no layer";
}

TEST(transforms, layers_that_share_an_array_are_told_apart) {
    // The weight of the first and of the last layer is one argument.
    const std::string tied = "(x: f32[4, 8], w: f32[8, 8], v: f32[8, 8]) -> (y: f32[4, 8], g: f32[8, 8], e: f32[4, 8], k: f32[8, 8]) {\n"
                             " a = dot_general(x, w) {contract: [[1], [0]]}\n b = dot_general(a, v) {contract: [[1], [0]]}\n"
                             " y = dot_general(b, w) {contract: [[1], [1]]}\n c = exp(y) : f32[4, 8] cotangent\n"
                             " g = dot_general(c, b) {contract: [[0], [0]]} : f32[8, 8] cotangent\n"
                             " d = dot_general(c, w) {contract: [[1], [0]]} : f32[4, 8] cotangent\n"
                             " e = dot_general(d, v) {contract: [[1], [1]]} : f32[4, 8] cotangent\n"
                             " f = dot_general(a, d) {contract: [[0], [0]]} : f32[8, 8] cotangent\n"
                             " k = dot_general(x, e) {contract: [[0], [0]]} : f32[8, 8] cotangent\n}";
    EXPECT_EQ(chosen("layer: first", tied), "a k");
    EXPECT_EQ(chosen("layer: last", tied), "y g d");
}

TEST(transforms, a_row_chooses_by_the_weight) {
    EXPECT_EQ(chosen("size_below: 128"), "y g3 d") << "w3, also where it is the result";
    EXPECT_EQ(chosen("size_below: 129"), "a y g3 d g1") << "not the smaller activations";
    EXPECT_EQ(chosen("not_multiple_of: 8"), "y g3 d");
    EXPECT_EQ(chosen("not_multiple_of: 16"), "a y g3 d g1");
    const std::string heads = "(q: f32[2, 4, 8], k: f32[2, 6, 8], w: f32[8, 2, 8], x: f32[b, 8]) -> (s: f32[2, 4, 6], y: f32[b, 2, 8]) {\n"
                              " a = exp(q)\n c = exp(k)\n s = dot_general(a, c) {contract: [[2], [2]], batch: [[0], [0]]}\n"
                              " y = dot_general(x, w) {contract: [[1], [0]]}\n}";
    EXPECT_EQ(chosen("size_below: 65", heads), "s") << "without a weight: an operand";
    EXPECT_EQ(chosen("not_multiple_of: 8", heads), "s") << "rows of an operand";
    EXPECT_EQ(chosen("not_multiple_of: 3", heads), "s y");
    EXPECT_NE(said("{op: dot_general, operand: any, not_multiple_of: 2}", heads), "no error") << "batch axes do not count, nor symbols";
}

TEST(transforms, a_row_chooses_by_the_number_of_terms) {
    const std::string products = "(x: f32[b, 4], w: f32[4, 8], v: f32[8, 2], k: f32[4], r: f32[16, b]) -> (a: f32[b, 8], y: f32[b, 2], "
                                 "o: f32[4, 4], z: f32[16, 4]) {\n a = dot_general(x, w) {contract: [[1], [0]]}\n"
                                 " y = dot_general(a, v) {contract: [[1], [0]]}\n o = dot_general(k, k) {contract: [[], []]}\n"
                                 " z = dot_general(r, x) {contract: [[1], [0]]}\n}";
    EXPECT_EQ(chosen("contracted_below: 8", products), "a") << "not symbols; an outer product is not a matmul";
    EXPECT_EQ(chosen("contracted_below: 9", products), "a y");
}

TEST(transforms, a_row_chooses_by_dtype) {
    const std::string mixed = "(x: bf16[4, 8], w: bf16[8, 8], v: f32[8, 8]) -> (a: bf16[4, 8], y: f32[8, 8]) {\n"
                              " a = dot_general(x, w) {contract: [[1], [0]]}\n y = dot_general(v, v) {contract: [[1], [0]]}\n}";
    EXPECT_EQ(chosen("dtype: f32", mixed), "y");
    EXPECT_EQ(chosen("dtype: bf16", mixed), "a");
    EXPECT_EQ(chosen("dtype: [f16, bf16, f32]", mixed), "a y");
    EXPECT_EQ(said("{argument: any, dtype: f16, store: f32}"),
              "p.yaml:2: this rule matches nothing: program 'p' has no float array of dtype 'f16'. If the rule may match nothing, add "
              "'optional: true'");
}

TEST(transforms, rows_of_layers_that_match_nothing_are_errors) {
    const std::string start = "p.yaml:2: this rule matches nothing: program 'p' has no ",
                      end = "If the rule may match nothing, add 'optional: true'";
    const std::string plain = "(x: f32[4, 8]) -> (y: f32[4, 8]) {\n y = tanh(x)\n}";
    EXPECT_EQ(said("{operand: any, layer: [first, last], store: bf16}", plain),
              start + "matmul or convolution in the layer 'first, last'. " + end);
    EXPECT_EQ(said("{operand: any, not_multiple_of: 8, store: bf16}"),
              start + "matmul whose weight has rows or columns that are not a multiple of '8'. " + end);
    EXPECT_EQ(said("{operand: any, contracted_below: 4, store: bf16}"), start + "matmul with a static contracted extent below '4'. " + end);
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

/// A gradient reverses the kernel of a convolution. The reversed kernel keeps its role.
TEST(transforms, values_that_a_gradient_moves_stay_primal) {
    const std::string step = "(x: f32[4, 8], w: f32[8, 8]) -> (y: f32[4, 8], d: f32[4, 8]) {\n"
                             " y = dot_general(x, w) {contract: [[1], [0]]}\n c = exp(y) : f32[4, 8] cotangent\n"
                             " r = rev(w) {dimensions: [0]} : f32[8, 8] cotangent\n"
                             " d = dot_general(c, r) {contract: [[1], [1]]} : f32[4, 8] cotangent\n}";
    const Policy policy = parse_policy("{policy: p, rules: [{op: dot_general, operand: cotangent, store: f16}]}", "p.yaml");
    const Program made = assign_numerics(typed(step), rules(), policy);
    std::string rounded;
    for (const Node &node : made.nodes)
        if (node.op == "convert_element_type" && made.type(node.results[0]).dtype == Dtype::f16)
            rounded += made.value_name(node.operands[0]);
    EXPECT_EQ(rounded, "c");
}

} // namespace scalide
