#include "ir/text.h"

#include <gtest/gtest.h>

namespace scalide {

namespace {

const char *const everything = R"(program head(z: f32[b, 10], y: i32[b]) -> (loss: f32[b]) {
  m = reduce_max(z) {axes: [1]} : f32[b]
  loss = integer_pow(m) {y: 2} : f32[b]
}

program sgd_step {eps: 1e-05, fill: -inf, rounding: down, title: "two words"} [b in 1..4096 step 16, n]
    (x: f32[b, 64], y: i32[b], w: f16[64, 10] scaled inout, lr: f32[])
    -> (loss: f32[], w = w1, norm: f32[] scaled = n2) {
  z = dot_general(x, w) {contract: [[1], [0]], preferred: f32} : f32[b, 10]
  scope "mlp/0" {
    values, indices = top_k(z) {k: 2} : f32[b, 2], i32[b, 2]
    g = mul(z, z) : f32[b, 10] cotangent
  }
  scope "mlp/1" {
    r = reshape(g) {shape: [2*b*n + 1, n - 1, b]} : f32[2*b*n + 1, n - 1, b]
  }
  l = call(z, y) {program: head} : f32[b]
  loss = reduce_sum(l) {axes: [0]} : f32[]
  c = constant() {value: 0.5} : f32[]
  n2 = mul(loss, c) : f32[]
  w1 = sub(w, w) : f16[64, 10]
}
)";

Program parse(const std::string &text) { return parse_program(text, "t.scl"); }

} // namespace

TEST(ir, prints_what_it_parsed) { EXPECT_EQ(to_string(parse(everything)), everything); }

TEST(ir, parts_of_arrays_are_in_the_text) {
    const std::string text =
        "program p\n"
        "    (w.data: f16[2] data of w inout, w.scale: f32[] scale of w inout, q.data: f32[2], q.scale: f32[])\n"
        "    -> (w.data = w.data, w.scale = w.scale, a: f32[2] data of y = q.data, b: f32[] scale of y = q.scale) {\n}\n";
    const Program program = parse(text);
    EXPECT_EQ(to_string(program), text);
    EXPECT_EQ(program.arguments[0].part, (ArrayPart{ArrayPart::Kind::data, "w"}));
    EXPECT_EQ(program.arguments[1].part, (ArrayPart{ArrayPart::Kind::scale, "w"}));
    EXPECT_EQ(program.arguments[3].part, ArrayPart()) << "a name says nothing";
    EXPECT_EQ(program.results[1].part, program.arguments[1].part);
    EXPECT_EQ(program.results[2].part, (ArrayPart{ArrayPart::Kind::data, "y"}));
}

TEST(ir, parses_every_part) {
    const Program program = parse(everything);
    EXPECT_EQ(program.name, "sgd_step");
    EXPECT_EQ(program.attributes.at("rounding").word, "down");
    EXPECT_EQ(program.symbols, (std::vector<Symbol>{{"b", 1, 4096, 16}, {"n"}}));
    ASSERT_EQ(program.arguments.size(), 4u);
    EXPECT_TRUE(program.arguments[2].scaled && program.arguments[2].inout);
    EXPECT_EQ(program.programs.at(0).name, "head");
    EXPECT_EQ(program.nodes[1].scope, "mlp/0");
    EXPECT_EQ(program.nodes[2].role, Role::cotangent);
    EXPECT_EQ(to_string(program.nodes[0].location), "t.scl:9:3");
    EXPECT_EQ(program.results[1].argument, 2);
    EXPECT_TRUE(program.results[1].scaled);
    EXPECT_EQ(program.value_name(program.results[2].value), "n2");
}
} // namespace scalide
