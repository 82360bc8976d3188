#include "interpret/interpret.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "support.h"
#include "transforms/analysis/passes.h"
#include <gtest/gtest.h>

namespace scalide {

namespace {

using Place = PolicyRule::Place;

Insertion convert(const char *dtype) { return {"convert_element_type", {{"dtype", dtype}}}; }

Policy policy_of(std::vector<PolicyRule> rules) {
    Policy policy;
    policy.rules = std::move(rules);
    return policy;
}

Program assigned(const std::string &text, const Policy &policy = {}) {
    const Program program = assign_numerics(typed(text), rules(), policy);
    verify(program, "assign_numerics");
    return program;
}

const std::string square = "(x: f32[2], w: f32[2] inout) -> (y: f32[2], w = v) {\n y = mul(x, w)\n v = add(w, y)\n}";

/// Delayed scaling with histories of three runs, in one format.
Policy delayed_per(PolicyState::Per per) {
    Policy policy =
        policy_of({{Place::operand, "any", "", {"dot_general"}, {}, {{"scaled_by", {{"s", "scale"}}}}, Dtype::f8_e4m3fn, {}, {}}});
    policy.state = {{"amax_history", per, {Dtype::f32, {3}}, 0, {"update_amax_history", {}}, {}},
                    {"scale", per, {Dtype::f32, {}}, 1, {"delayed_scale", {{"history", "amax_history"}}}, {"delayed.yaml", 4}}};
    return policy;
}

/// Two microbatches of one layer.
const std::string microbatches =
    "(x0: f32[2], x1: f32[2], w: f32[2]) -> (y0: f32[], y1: f32[]) {\n scope \"layer\" {\n"
    "  y0 = dot_general(x0, w) {contract: [[0], [0]]}\n  y1 = dot_general(x1, w) {contract: [[0], [0]]}\n }\n}";

std::vector<std::string> argument_names(const Program &program) {
    std::vector<std::string> names;
    for (const Argument &argument : program.arguments) names.push_back(program.value_name(argument.value));
    return names;
}

} // namespace

TEST(transforms, assign_numerics_leaves_f32_alone) {
    EXPECT_EQ(body(assigned(square)), "y = mul(x, w) : f32[2]\nv = add(w, y) : f32[2]\n");
}

/// With `per: scope` the inputs of a layer share one state, whose next value is the largest of their values.
TEST(transforms, assign_numerics_merges_the_state_of_a_scope) {
    using Per = PolicyState::Per;
    const Program program = assigned(microbatches, delayed_per(Per::scope));
    EXPECT_EQ(argument_names(program),
              (std::vector<std::string>{"x0", "x1", "w", "x0.amax_history", "x0.scale", "w.amax_history", "w.scale"}));
    const auto f32 = [](std::vector<int64_t> shape, std::vector<double> data) {
        return Array{Dtype::f32, std::move(shape), std::move(data)};
    };
    for (const bool first_is_larger : {false, true}) {
        const Array small = f32({2}, {-3, 1}), large = f32({2}, {2, -7});
        const std::vector<Array> results = interpret(program,
                                                     {first_is_larger ? large : small, first_is_larger ? small : large, f32({2}, {1, 0.5}),
                                                      f32({3}, {4, 1, 2}), f32({}, {1}), f32({3}, {0, 0, 0}), f32({}, {1})},
                                                     rules(), Mode::real);
        ASSERT_EQ(results.size(), 6U);
        EXPECT_EQ(results[2].data, (std::vector<double>{7, 2, 4}));
        EXPECT_DOUBLE_EQ(results[3].data[0], 7 / 448.0);
        EXPECT_EQ(results[4].data, (std::vector<double>{1, 0, 0}));
    }
    EXPECT_EQ(argument_names(assigned(microbatches, delayed_per(Per::tensor))).size(), 9U);
    EXPECT_EQ(error_of([&] {
                  assigned("(x: f32[2], w: f32[2]) -> (y: f32[]) {\n y = dot_general(x, w) {contract: [[0], [0]]}\n}",
                           delayed_per(Per::scope));
              }),
              "delayed.yaml:4: each scope has a 'scale', but the operator that uses 'x' has no scope. Give it a scope in the program, or "
              "write 'per: tensor'");
}

/// The arrays and results of a program keep their names. A state whose name is taken gets a number.
TEST(transforms, assign_numerics_numbers_states_whose_names_are_taken) {
    const Program program = assigned("(x: f32[2], x.scale: f32[], w: f32[2]) -> (y: f32[], w.scale: f32[]) {\n"
                                     " y = dot_general(x, w) {contract: [[0], [0]]}\n w.scale = mul(x.scale, x.scale)\n}",
                                     delayed_per(PolicyState::Per::tensor));
    EXPECT_EQ(argument_names(program),
              (std::vector<std::string>{"x", "x.scale", "w", "x.amax_history", "x.scale1", "w.amax_history", "w.scale1"}));
    std::vector<std::string> results;
    for (const Result &result : program.results) results.push_back(result.name);
    EXPECT_EQ(results, (std::vector<std::string>{"y", "w.scale", "x.amax_history", "x.scale1", "w.amax_history", "w.scale1"}));
}

/// The program does not contain the operators of a policy, so an error of one names the line of the policy.
TEST(transforms, assign_numerics_names_the_line_of_an_operator_that_a_policy_adds) {
    const auto message = [](Policy policy) {
        return error_of(
            [&] { assigned("(x: f32[2], w: f32[2]) -> (y: f32[]) {\n y = dot_general(x, w) {contract: [[0], [0]]}\n}", policy); });
    };
    Policy policy = delayed_per(PolicyState::Per::tensor);
    policy.rules[0].location = {"delayed.yaml", 6};
    policy.state[0].location = {"delayed.yaml", 3};
    policy.state[0].type.shape = {3, 3};
    EXPECT_EQ(message(policy), "delayed.yaml:3: update_amax_history: the history must have one axis, got 2 and 1 (x.amax_history: f32[3, "
                               "3], x: f32[2]). This line updates "
                               "state 'x.amax_history' with it");
    policy = delayed_per(PolicyState::Per::tensor);
    policy.rules[0].location = {"delayed.yaml", 6};
    policy.rules[0].store = Dtype::f8_e8m0fnu;
    EXPECT_TRUE(message(policy).ends_with(
        "scaled_by: dtype must be a float with a sign, got x: f32[2], x.scale: f32[], dtype: f8_e8m0fnu. delayed.yaml:6 rounds 'x' "
        "with it"))
        << message(policy);
}

/// What scales and codes of blocks are depends on their format, however their readers compute.
TEST(transforms, assign_numerics_keeps_the_formats_of_codes) {
    const Program program = assigned("(x: f32[4]) -> (y: f32[2], c: f32[4]) {\n"
                                     "  s = block_scales(x) {block: 2, dtype: f8_e5m2, scales: f8_e8m0fnu}\n"
                                     "  y = convert_element_type(s) {dtype: f32}\n"
                                     "  k = block_codes(x, s) {dtype: f8_e5m2}\n"
                                     "  c = convert_element_type(k) {dtype: f32}\n}");
    const std::vector<Array> results = interpret(program, {{Dtype::f32, {4}, {57344, 1, 1, 28671}}}, rules(), Mode::stored);
    EXPECT_EQ(results[0].data, (std::vector<double>{1, 0.5}));
    EXPECT_EQ(results[1].data, (std::vector<double>{57344, 1, 2, 57344}));
}

TEST(transforms, assign_numerics_retypes_arguments) {
    const Policy policy = policy_of({{Place::argument, "inout", "", {}, {}, {}, Dtype::f16, true, {}}});
    EXPECT_EQ(to_string(assigned(square, policy)),
              "program p(x: f32[2], w: f16[2] scaled inout) -> (y: f32[2], w = v.f16) {\n"
              "  w.f32 = convert_element_type(w) {dtype: f32} : f32[2] form of w\n"
              "  w.stop_scaling = stop_scaling(w.f32) : f32[2] form of w\n"
              "  y = mul(x, w.stop_scaling) : f32[2]\n"
              "  v = add(w.stop_scaling, y) : f32[2]\n"
              "  v.dynamic_rescale = dynamic_rescale(v) {groups: [], norm: max, to: 1.0} : f32[2] form of v\n"
              "  v.f16 = convert_element_type(v.dynamic_rescale) {dtype: f16} : f16[2] form of v\n"
              "}\n")
        << "a scaled result without a rescale gets one of its own";
}

TEST(transforms, assign_numerics_propagates_scales_of_scaled_programs) {
    const std::string scaled =
        "(x: f32[2] scaled, w: f32[2] inout) -> (y: f32[2], w = v) {\n y = mul(x, w)\n v = dynamic_rescale(y) {groups: [], norm: max}\n}";
    const Policy policy = policy_of({{Place::argument, "inout", "", {}, {}, {}, Dtype::f16, true, {}}});
    const std::string kept = "w.f32 = convert_element_type(w) {dtype: f32} : f32[2] form of w\n"
                             "y = mul(x, w.f32) : f32[2]\n"
                             "v = dynamic_rescale(y) {groups: [], norm: max, to: 1} : f32[2]\n"
                             "v.f16 = convert_element_type(v) {dtype: f16} : f16[2] form of v\n";
    EXPECT_EQ(body(assigned(scaled, policy)), kept);
    Policy propagated = policy;
    propagated.propagates = true;
    EXPECT_EQ(body(assigned(square, propagated)), "w.f32 = convert_element_type(w) {dtype: f32} : f32[2] form of w\n"
                                                  "y = mul(x, w.f32) : f32[2]\n"
                                                  "v = add(w.f32, y) : f32[2]\n"
                                                  "v.f16 = convert_element_type(v) {dtype: f16} : f16[2] form of v\n");
}

TEST(transforms, assign_numerics_ignores_scales_in_plain_programs) {
    const std::string text =
        "(x: f32[4], y: f32[4]) -> (z: f32[4]) {\n a = set_scaling(x, 2)\n b = dynamic_rescale_max(a)\n z = add(b, y)\n}";
    EXPECT_TRUE(body(assigned(text)).ends_with("\nz = add(x, y) : f32[4]\n"));
}

/// dequantize sets a scale too, but its value is not its operand.
TEST(transforms, assign_numerics_keeps_scales_that_change_values) {
    const std::string text = "(q: f8_e4m3fn[4], s: f32[]) -> (z: f32[4]) {\n z = dequantize(q, s)\n}";
    EXPECT_TRUE(body(assigned(text)).ends_with("\nz = dequantize(q.f32, s) {compute: f32, dtype: f32} : f32[4]\n")) << body(assigned(text));
}

TEST(transforms, assign_numerics_keeps_one_narrow_form) {
    const Insertion rescale{"dynamic_rescale", {{"norm", "max"}}};
    const Policy policy = policy_of({{Place::argument, "inout", "", {}, {}, {}, Dtype::f16, true, {}},
                                     {Place::operand, "any", "", {"dot"}, {}, {rescale, convert("f16")}, {}, {}, {}}});
    const std::string made = body(assigned("(x: f32[2, 2], net.w: f32[2, 2] inout) -> (y: f32[2, 2], net.w = net.w) {\n"
                                           " t = transpose(net.w) {permutation: [1, 0]}\n y = dot(x, t)\n}",
                                           policy));
    EXPECT_NE(made.find("x.dynamic_rescale"), std::string::npos);
    EXPECT_EQ(made.find("t.dynamic_rescale"), std::string::npos) << "elements of net.w are f16 with a scale already";
    EXPECT_NE(made.find("net.w.stop_scaling"), std::string::npos) << "names of parameters stay whole";
}

TEST(transforms, assign_numerics_inserts_once_on_edges) {
    const Insertion rescale{"dynamic_rescale", {{"norm", "max"}, {"to", 224}}};
    const Policy policy = policy_of({{Place::operand, "any", "", {"mul"}, {}, {rescale, convert("f8_e4m3fn")}, {}, {}, {}}});
    EXPECT_EQ(body(assigned("(x: f32[2], y: f32[2]) -> (r: f32[2]) {\n a = mul(x, x)\n b = mul(x, y)\n r = add(a, b)\n}", policy)),
              "x.dynamic_rescale = dynamic_rescale(x) {groups: [], norm: max, to: 224} : f32[2] form of x\n"
              "x.f8_e4m3fn = convert_element_type(x.dynamic_rescale) {dtype: f8_e4m3fn} : f8_e4m3fn[2] form of x\n"
              "x.f32 = convert_element_type(x.f8_e4m3fn) {dtype: f32} : f32[2] form of x\n"
              "x.stop_scaling = stop_scaling(x.f32) : f32[2] form of x\n"
              "a = mul(x.stop_scaling, x.stop_scaling) : f32[2]\n"
              "y.dynamic_rescale = dynamic_rescale(y) {groups: [], norm: max, to: 224} : f32[2] form of y\n"
              "y.f8_e4m3fn = convert_element_type(y.dynamic_rescale) {dtype: f8_e4m3fn} : f8_e4m3fn[2] form of y\n"
              "y.f32 = convert_element_type(y.f8_e4m3fn) {dtype: f32} : f32[2] form of y\n"
              "y.stop_scaling = stop_scaling(y.f32) : f32[2] form of y\n"
              "b = mul(x.stop_scaling, y.stop_scaling) : f32[2]\n"
              "r = add(a, b) : f32[2]\n");
}

TEST(transforms, assign_numerics_hands_over_what_a_result_replaces) {
    const Insertion rescale{"delayed_rescale", {{"norm", "max"}}};
    const std::vector<PolicyRule> rows = {{Place::argument, "inout", "", {}, {}, {}, Dtype::f16, true, {}},
                                          {Place::program_result, "inout", "", {}, {}, {rescale}, Dtype::f16, {}, {}}};
    EXPECT_EQ(body(assigned(square, policy_of(rows))),
              "w.f32 = convert_element_type(w) {dtype: f32} : f32[2] form of w\n"
              "w.stop_scaling = stop_scaling(w.f32) : f32[2] form of w\n"
              "y = mul(x, w.stop_scaling) : f32[2]\n"
              "v = add(w.stop_scaling, y) : f32[2]\n"
              "v.delayed_rescale = delayed_rescale(v, w.stop_scaling) {groups: [], norm: max, to: 1} : f32[2] form of v\n"
              "v.f16 = convert_element_type(v.delayed_rescale) {dtype: f16} : f16[2] form of v\n");
    Policy elsewhere = policy_of({{Place::node_result, "any", "", {"mul"}, {}, {rescale}, {}, {}, {"p.yaml", 3}}});
    try {
        assigned(square, elsewhere);
        ADD_FAILURE() << "nothing was thrown";
    } catch (const UserError &error) {
        EXPECT_STREQ(error.what(), "p.yaml:3: 'delayed_rescale' can be inserted only by a rule with 'result: inout'. "
                                   "Its second operand is the value of the argument before the update");
    }
}

TEST(transforms, assign_numerics_tells_cotangents_apart) {
    const Policy policy = policy_of({{Place::operand, "cotangent", "", {"mul"}, {}, {convert("f8_e5m2")}, {}, {}, {}},
                                     {Place::operand, "primal", "", {"mul"}, {}, {convert("f8_e4m3fn")}, {}, {}, {}}});
    EXPECT_EQ(body(assigned("(x: f32[2], y: f32[2]) -> (r: f32[2]) {\n c = exp(y) : f32[2] cotangent\n r = mul(x, c) : f32[2] cotangent\n}",
                            policy)),
              "c = exp(y) : f32[2] cotangent\n"
              "x.f8_e4m3fn = convert_element_type(x) {dtype: f8_e4m3fn} : f8_e4m3fn[2] form of x\n"
              "x.f32 = convert_element_type(x.f8_e4m3fn) {dtype: f32} : f32[2] form of x\n"
              "c.f8_e5m2 = convert_element_type(c) {dtype: f8_e5m2} : f8_e5m2[2] form of c cotangent\n"
              "c.f32 = convert_element_type(c.f8_e5m2) {dtype: f32} : f32[2] form of c cotangent\n"
              "r = mul(x.f32, c.f32) : f32[2] cotangent\n");
}

TEST(transforms, assign_numerics_stores_results_of_nodes) {
    const Policy policy = policy_of({{Place::node_result, "any", "mlp/**", {"exp"}, 10, {}, Dtype::bf16, {}, {}}});
    const std::string text =
        body(assigned("(x: f32[4], z: f32[20]) -> (r: f32[4] = c, s: f32[20]) {\n scope \"mlp/0\" {\n a = exp(x)\n s = exp(z)\n }\n"
                      " b = exp(a)\n c = mul(a, b)\n}",
                      policy));
    EXPECT_EQ(text, "scope \"mlp/0\" {\n"
                    "  a = exp(x) : f32[4]\n"
                    "  a.bf16 = convert_element_type(a) {dtype: bf16} : bf16[4] form of a\n"
                    "  a.f32 = convert_element_type(a.bf16) {dtype: f32} : f32[4] form of a\n"
                    "  s = exp(z) : f32[20]\n"
                    "}\n"
                    "b = exp(a.f32) : f32[4]\n"
                    "c = mul(a.f32, b) : f32[4]\n");
}

TEST(transforms, assign_numerics_rounds_what_the_program_types_narrow) {
    const std::string text = "(x: f16[4], w: f16[4]) -> (r: f16[] = d) {\n a = add(x, w)\n b = exp(a)\n c = mul(b, b)\n"
                             " d = reduce_sum(c) {axes: [0]}\n}";
    EXPECT_EQ(body(assigned(text)), "x.f32 = convert_element_type(x) {dtype: f32} : f32[4] form of x\n"
                                    "w.f32 = convert_element_type(w) {dtype: f32} : f32[4] form of w\n"
                                    "a = add(x.f32, w.f32) : f32[4]\n"
                                    "b = exp(a) : f32[4]\n"
                                    "b.f16 = convert_element_type(b) {dtype: f16, overflow: format} : f16[4] form of b\n"
                                    "b.f32 = convert_element_type(b.f16) {dtype: f32} : f32[4] form of b\n"
                                    "c = mul(b.f32, b.f32) : f32[4]\n"
                                    "d = reduce_sum(c) {axes: [0]} : f32[]\n"
                                    "d.f16 = convert_element_type(d) {dtype: f16, overflow: format} : f16[] form of d\n"
                                    "d.f32 = convert_element_type(d.f16) {dtype: f32} : f32[] form of d\n"
                                    "d.f161 = convert_element_type(d.f32) {dtype: f16, overflow: format} : f16[] form of d\n");
    Policy every;
    every.round_every_node = true;
    const std::string rounded = body(assigned(text, every));
    for (const char *name : {"a.f16", "b.f16", "c.f16", "d.f16"}) EXPECT_NE(rounded.find(name), std::string::npos) << rounded;
}

TEST(transforms, assign_numerics_keeps_conversions_of_the_program) {
    EXPECT_EQ(body(assigned("(x: f32[4]) -> (r: f32[4] = b) {\n h = convert_element_type(x) {dtype: f16}\n"
                            " b = convert_element_type(h) {dtype: f32}\n}")),
              "x.f16 = convert_element_type(x) {dtype: f16, overflow: format} : f16[4] form of x\n"
              "x.f32 = convert_element_type(x.f16) {dtype: f32} : f32[4] form of x\n");
}

TEST(transforms, assign_numerics_says_what_overflows) {
    Policy policy = policy_of({{Place::operand, "any", "", {"mul"}, {}, {convert("f16")}, {}, {}, {}}});
    policy.rules[0].optional = true;
    policy.overflow = Overflow::format;
    const std::string text = "(x: f32[4]) -> (r: f32[4] = b, f: bf16[4] = c) {\n"
                             " h = convert_element_type(x) {dtype: f8_e4m3fn, overflow: saturate}\n"
                             " b = mul(x, x)\n c = convert_element_type(h) {dtype: bf16}\n}";
    const std::string assigned_text = body(assigned(text, policy));
    EXPECT_NE(assigned_text.find("convert_element_type(x) {dtype: f8_e4m3fn} :"), std::string::npos) << assigned_text;
    EXPECT_NE(assigned_text.find("convert_element_type(x) {dtype: f16, overflow: format} :"), std::string::npos) << assigned_text;
    EXPECT_NE(assigned_text.find("convert_element_type(x.f16) {dtype: f32} :"), std::string::npos) << assigned_text;
    EXPECT_NE(assigned_text.find("{dtype: bf16, overflow: format} :"), std::string::npos) << assigned_text;
}

// The key `overflow` of a policy is about the policy's roundings.
TEST(transforms, roundings_of_the_program_overflow_under_every_policy) {
    const std::string text = "(x: f32[4], w: f32[4]) -> (r: f32[4] = b, h: f16[4]) {\n"
                             " h = convert_element_type(x) {dtype: f16}\n b = mul(x, w)\n}";
    for (const Overflow overflow : {Overflow::saturate, Overflow::format}) {
        Policy policy = policy_of({{Place::operand, "any", "", {"mul"}, {}, {convert("f8_e5m2")}, {}, {}, {}}});
        policy.rules[0].optional = true;
        policy.overflow = overflow;
        const std::string made = body(assigned(text, policy)), own = overflow == Overflow::format ? ", overflow: format" : "";
        EXPECT_NE(made.find("convert_element_type(x) {dtype: f16, overflow: format} :"), std::string::npos) << made;
        EXPECT_NE(made.find("convert_element_type(w) {dtype: f8_e5m2" + own + "} :"), std::string::npos) << made;
        const std::string constant = body(assigned("() -> (r: f16[]) {\n r = constant() {value: 1e6, dtype: f16}\n}", policy));
        EXPECT_NE(constant.find("value: inf"), std::string::npos) << constant;
    }
}

// Otherwise a number that overflows in f16 would become the largest number of the policy's format, and is_finite would not see it.
TEST(transforms, an_operand_overflows_in_its_own_dtype_before_a_policy_saturates_it) {
    const std::string text = "(x: f16[4, 8], y: f16[4, 8], w: f16[8, 2]) -> (r: f16[4, 2]) {\n a = mul(x, y)\n"
                             " r = dot_general(a, w) {contract: [[1], [0]]}\n}";
    const auto rounds_first = [&](const std::string &rule) {
        const Policy policy = parse_policy("{policy: p, rules: [{op: dot_general, operand: lhs, " + rule + ", store: f8_e5m2}]}", "p.yaml");
        return body(assigned(text, policy)).find("(a) {dtype: f16, overflow: format}") != std::string::npos;
    };
    EXPECT_TRUE(rounds_first("insert: []"));
    EXPECT_FALSE(rounds_first("scale: {by: max}")) << "the scale fits the data, and small numbers stay";
}

TEST(transforms, assign_numerics_checks_results) {
    PolicyRule rule{Place::program_result, "inout", "", {}, {}, {}, Dtype::f16, {}, {}};
    rule.location = {"policy.yaml", 4};
    EXPECT_EQ(error_of([&] { assigned(square, policy_of({rule})); }),
              "policy.yaml:4: 'store' of result 'w': must be the dtype of its inout argument, f32, got f16. Give the argument a rule with "
              "the same "
              "'store'");
}

} // namespace scalide
