#include "ir/text.h"
#include "support.h"
#include "transforms/fusion/fuse.h"
#include "transforms/pipeline.h"
#include <gtest/gtest.h>

// What kernels store for each other: `intermediates` of policies, and new states that are computed twice.
namespace scalide {
namespace {

const std::string policies = std::string(SCALIDE_RULES_DIR) + "/policies/";

Program compiled(const std::string &text, const std::string &policy) {
    CompileOptions options;
    options.policy = load_policy(policies + policy + ".yaml");
    return compile(parse_program("program p" + text, "p.scl"), rules(), options);
}

/// The types of the arrays that kernels write and that are no results of the program.
std::vector<std::string> stored(const Program &fused) {
    std::vector<std::string> types;
    for (const Node &call : fused.nodes)
        for (const ValueId value : call.results) {
            const bool is_result = std::ranges::find(fused.results, value, &Result::value) != fused.results.end();
            if (!is_result && !fused.type(value).is_scalar()) types.push_back(to_string(fused.type(value)));
        }
    return types;
}

const std::string two_layers = "(x: f32[32, 64], v: f32[64, 64], w: f32[64, 16]) -> (y: f32[32, 16]) {\n"
                               "  a = dot_general(x, v) {contract: [[1], [0]]}\n"
                               "  b = tanh(a)\n"
                               "  y = dot_general(b, w) {contract: [[1], [0]]}\n}\n";

const std::string step = "(x: f32[32, 64], w: f32[64, 64] inout, m: f32[64, 64] inout) -> (w = u, m = n) {\n"
                         "  y = dot_general(x, w) {contract: [[1], [0]]}\n"
                         "  g = dot_general(x, y) {contract: [[0], [0]]}\n"
                         "  r = reduce_sum(y) {axes: [0, 1]}\n"
                         "  s = broadcast_in_dim(r) {shape: [64, 64], dims: []}\n"
                         "  d = div(g, s)\n  k = abs(m)\n  h = sqrt(k)\n  n = add(h, d)\n  u = sub(w, n)\n}\n";

} // namespace

TEST(fuse_stores, intermediates_are_as_narrow_as_the_policy_says) {
    const std::vector<std::string> narrow = stored(compiled(two_layers, "f8_master"));
    EXPECT_EQ(std::ranges::count(narrow, "bf16[32, 64]"), 1) << "what waits for its scale";
    EXPECT_EQ(std::ranges::count_if(narrow, [](const std::string &type) { return type.starts_with("f32"); }), 0);
    EXPECT_EQ(stored(compiled(two_layers, "f32")), (std::vector<std::string>{"f32[32, 64]"}));
}

/// The scale is known before the matmul, so the kernel that computes a layer writes it in the format that the next layer reads, and no
/// other: forward in e4m3, and the gradient with respect to the hidden layer in e5m2.
TEST(fuse_stores, delayed_scaling_stores_a_layer_in_the_format_of_the_next) {
    const std::string forward = "program loss(x: f32[32, 64], v: f32[64, 48], w: f32[48, 16]) -> (s: f32[]) {\n"
                                "  a = dot_general(x, v) {contract: [[1], [0]]}\n  y = dot_general(a, w) {contract: [[1], [0]]}\n"
                                "  z = mul(y, y)\n  s = reduce_sum(z) {axes: [0, 1]}\n}\n";
    CompileOptions options;
    options.policy = load_policy(policies + "f8_delayed.yaml");
    const std::string gradients = "program p(x: f32[32, 64], v: f32[64, 48], w: f32[48, 16]) -> (g: f32[64, 48], h: f32[48, 16]) {\n"
                                  "  g, h = grad(x, v, w) {program: loss, wrt: [v, w]}\n}\n";
    std::vector<std::string> types;
    for (const std::string &type : stored(compile(parse_program(forward + gradients, "p.scl"), rules(), options)))
        if (type.find("1024") == std::string::npos) types.push_back(type);
    EXPECT_EQ(types, (std::vector<std::string>{"f8_e4m3fn[32, 48]", "f8_e5m2[32, 16]", "f8_e5m2[32, 48]"}));
}

/// Only what a product rounds anyway is stored in 16 bits.
TEST(fuse_stores, arrays_that_no_product_reads_stay_as_the_program_has_them) {
    std::string wave = "(u0: f32[64, 64], v0: f32[64, 64]) -> (u4: f32[64, 64], v4: f32[64, 64]) {\n";
    for (int i = 0; i < 4; i++) {
        const std::string u = "u" + std::to_string(i), v = "v" + std::to_string(i), t = std::to_string(i + 1);
        wave += "  a" + t + " = cumsum(" + u + ") {axis: 0}\n  b" + t + " = cumsum(a" + t + ") {axis: 1}\n  v" + t + " = sub(" + v + ", b" +
                t + ")\n  u" + t + " = add(" + u + ", v" + t + ")\n";
    }
    for (const std::string policy : {"f16_scaled", "f8_master"})
        for (const std::string &type : stored(compiled(wave + "}\n", policy))) EXPECT_EQ(type, "f32[64, 64]") << policy;
    const std::string logits = "(x: f32[32, 64], w: f32[64, 16]) -> (y: f32[32, 16]) {\n  l = dot_general(x, w) {contract: [[1], [0]]}\n"
                               "  m = reduce_max(l) {axes: [1]}\n  b = broadcast_in_dim(m) {shape: [32, 16], dims: [0]}\n"
                               "  s = sub(l, b)\n  y = exp(s)\n}\n";
    EXPECT_EQ(std::ranges::count(stored(compiled(logits, "f8_master")), "bf16[32, 16]"), 0) << "the result of a product";
}

/// A carry goes from step to step, and would be rounded at each. The products read rounded copies.
TEST(fuse_stores, carries_stay_as_the_program_has_them) {
    const std::string recurrence =
        "(h: f32[32, 64], w: f32[64, 64]) -> (y: f32[32, 64]) {\n  a = dot_general(h, w) {contract: [[1], [0]]}\n"
        "  b = tanh(a)\n  c = add(h, b)\n  d = dot_general(c, w) {contract: [[1], [0]]}\n  e = tanh(d)\n"
        "  f = add(c, e)\n  g = dot_general(f, w) {contract: [[1], [0]]}\n  i = tanh(g)\n  y = add(f, i)\n}\n";
    EXPECT_EQ(std::ranges::count(stored(compiled(recurrence, "f8_master")), "f32[32, 64]"), 2);
    EXPECT_EQ(std::ranges::count(stored(compiled(recurrence, "f8_master")), "bf16[32, 64]"), 2);
}

TEST(fuse_stores, what_decides_an_order_is_not_rounded) {
    const auto program = [](const std::string &node, const std::string &type) {
        return "(x: f32[32, 64], v: f32[64, 64], w: f32[64, 16]) -> (y: f32[32, 16], i: " + type + ") {\n" +
               "  a = dot_general(x, v) {contract: [[1], [0]]}\n  b = tanh(a)\n  y = dot_general(b, w) {contract: [[1], [0]]}\n  " + node +
               "\n}\n";
    };
    const std::string argmax = program("i = argmax(b) {axis: 1}", "i32[32]"), sorted = program("i = sort(b) {dimension: 1}", "f32[32, 64]");
    for (const std::string &text : {argmax, sorted}) {
        EXPECT_EQ(std::ranges::count(stored(compiled(text, "f16_scaled")), "bf16[32, 64]"), 0) << text;
        const std::vector<std::string> types = stored(compiled(text, "f8_master"));
        EXPECT_EQ(std::ranges::count(types, "bf16[32, 64]"), 1) << "the copy that the product reads\n" << text;
        EXPECT_EQ(std::ranges::count(types, "f32[32, 64]"), 1) << text;
    }
}

TEST(fuse_stores, what_a_row_keeps_is_not_rounded_in_between) {
    const std::string scoped =
        "(x: f32[32, 64], v: f32[64, 64], w: f32[64, 16]) -> (y: f32[32, 16]) {\n  a = dot_general(x, v) {contract: [[1], [0]]}\n"
        "  b = tanh(a)\n  scope \"head\" {\n    y = dot_general(b, w) {contract: [[1], [0]]}\n  }\n}\n";
    CompileOptions options;
    options.policy = parse_policy("{policy: p, extends: f8_master, rules: [{keep: \"head/**\"}]}", "p.yaml", policies);
    const std::vector<std::string> types = stored(compile(parse_program("program p" + scoped, "p.scl"), rules(), options));
    EXPECT_EQ(types, (std::vector<std::string>{"f32[32, 64]"}));
}

TEST(fuse_stores, a_new_narrow_state_is_not_stored_in_between) {
    const std::vector<std::string> types = stored(compiled(step, "f16_scaled"));
    EXPECT_EQ(std::ranges::count(types, "f32[64, 64]"), 1) << "the gradient alone, and in f32";
    EXPECT_EQ(std::ranges::count(types, "bf16[64, 64]"), 0);
}

/// The minimum is of the unrounded product: none of its rounded elements would equal it.
TEST(fuse_stores, what_is_looked_for_again_is_not_rounded_in_between) {
    const std::string text =
        "(x: f32[32, 64], w: f32[64, 16]) -> (y: f32[16, 16]) {\n"
        "  g = dot_general(x, w) {contract: [[1], [0]]}\n  m = reduce_min(g) {axes: [0, 1]}\n"
        "  b = broadcast_in_dim(m) {shape: [32, 16], dims: []}\n  e = eq(g, b)\n  f = convert_element_type(e) {dtype: f32}\n"
        "  h = mul(g, f)\n  y = dot_general(h, h) {contract: [[0], [0]]}\n}\n";
    EXPECT_EQ(std::ranges::count(stored(compiled(text, "f8_master")), "f32[32, 16]"), 1);
}

/// A kernel that computed the new state from the old one again would overwrite elements that it still has to read: an error of `compile`.
TEST(fuse_stores, a_transposed_state_is_stored_in_between) {
    for (const std::string link : {"u = transpose(w) {permutation: [1, 0]}", "t = transpose(w) {permutation: [1, 0]}\n  u = add(w, t)",
                                   "t = mul(w, w)\n  u = rev(t) {dimensions: [0]}"}) {
        const Program fused = compiled("(w: f32[64, 64] inout) -> (w = u) {\n  " + link + "\n}\n", "f16_scaled");
        EXPECT_EQ(stored(fused).size(), 1u) << link;
    }
    EXPECT_TRUE(stored(compiled("(w: f32[64, 64] inout) -> (w = u) {\n  t = mul(w, w)\n  u = add(w, t)\n}\n", "f16_scaled")).empty());
}

TEST(fuse_stores, what_kernels_repeat_is_handed_on) {
    Program shaped;
    CompileOptions options;
    options.policy = load_policy(policies + "f8_scaled.yaml");
    options.after_pass = [&](const std::string &pass, const Program &program) {
        if (pass == "place_stores") shaped = program;
    };
    const Program fused = compile(parse_program("program p" + step, "p.scl"), rules(), options);
    ASSERT_TRUE(shaped.attributes.contains("repeated"));
    EXPECT_EQ(to_string(parse_program(to_string(shaped), "p.scl")), to_string(shaped));
    EXPECT_EQ(to_string(form_kernels(shaped, options.facts)), to_string(fused));
    shaped.attributes.erase("repeated");
    EXPECT_EQ(to_string(form_kernels(shaped, options.facts)), to_string(fused)) << "formed twice from nothing";
}

TEST(fuse_stores, both_forms_of_a_step_round_alike) {
    std::string functional = step;
    functional.replace(0, functional.find("{"), "(x: f32[32, 64], w: f32[64, 64], m: f32[64, 64]) -> (u: f32[64, 64], n: f32[64, 64]) ");
    EXPECT_EQ(stored(compiled(step, "f8_master")), stored(compiled(functional, "f8_master"))) << "what is donated says nothing";
}

} // namespace scalide
