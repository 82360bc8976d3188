#include "ir/text.h"
#include "ir/verify.h"
#include "ir/words.h"

#include <gtest/gtest.h>
#include <sstream>

namespace scalide {

namespace {

const char *const everything = R"(program head(z: f32[b, 10], y: i32[b]) -> (loss: f32[b]) {
  m = reduce_max(z) {axes: [1]} : f32[b]
  loss = integer_pow(m) {y: 2} : f32[b]
}

program sgd_step {eps: 1e-05, fill: -inf, rounding: down, title: "two words"} [b in 1..4096 step 16 likely [16, 64], n]
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

/// Names that no C compiler, shell, path or parser would take as they are.
std::vector<std::string> odd_names() {
    std::vector<std::string> names{"layer 0/kernel\"x", "\n",        "\t\x7f\x1b[2J", " ", "x: f32[2]", "params['layer 0'].kernel",
                                   "gr\u00f6\u00dfe",   "\U0001f600"};
    std::istringstream words(
        R"(\ " ../../etc/passwd a/b inf nan 0 -1 1e5 .x int # */ ??/ %s $(id) `id` ; program scope scaled inout
        cotangent data of form)");
    for (std::string word; words >> word;) names.push_back(word);
    return names;
}

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

TEST(ir, parts_of_values_are_in_the_text) {
    const std::string text = R"(program p(x: f32[2]) -> (data: f16[2]) {
  h = convert_element_type(x) {dtype: f16} : f16[2] form of x
  data, scale = split(h) : f16[2] data of "layer 0", f32[] scale of "layer 0" cotangent
  form = neg(h) : f16[2]
  y = neg(data) : f16[2] data of data
}
)";
    const Program program = parse(text);
    EXPECT_EQ(to_string(program), text);
    const auto part_of = [&](size_t node, size_t result) { return program.values[program.nodes[node].results[result]].part; };
    EXPECT_EQ(part_of(0, 0), (ArrayPart{ArrayPart::Kind::whole, "x"}));
    EXPECT_EQ(part_of(1, 0), (ArrayPart{ArrayPart::Kind::data, "layer 0"}));
    EXPECT_EQ(part_of(1, 1), (ArrayPart{ArrayPart::Kind::scale, "layer 0"}));
    EXPECT_EQ(part_of(2, 0), ArrayPart());
}

TEST(ir, names_may_be_any_text) {
    for (const std::string &name : odd_names()) {
        Program program;
        program.name = name;
        const ValueId x = add_value(program, name, {Dtype::f32, {2}}, {ArrayPart::Kind::data, name});
        program.arguments = {{x}};
        Node node;
        node.op = "neg";
        node.operands = {x};
        const ValueId y = add_node(program, node, {{Dtype::f32, {2}}}, name)[0];
        program.values[y].part = {ArrayPart::Kind::whole, name};
        program.results = {{name, y}};
        Program callee = program;
        callee.name += "2";
        program.attributes["other"] = callee.name;
        program.programs = {callee};
        EXPECT_NO_THROW(verify(program, "")) << name;
        const Program read = parse(to_string(program));
        EXPECT_EQ(to_string(read), to_string(program));
        EXPECT_EQ(read.name, name);
        EXPECT_EQ(read.value_name(y), name + "1");
        EXPECT_EQ(read.values[y].part.of, name);
        EXPECT_EQ(read.results[0].name, name);
        EXPECT_EQ(read.attributes.at("other").word, name + "2");
    }
}

TEST(ir, constants_leave_names_to_others) {
    const Program program = parse("program p(x: f32[]) -> (y$0: f32[]) {\n  y = mul(x, 2) : f32[]\n  y$0 = mul(y, 3)\n}\n");
    EXPECT_NO_THROW(verify(program, "")) << to_string(program);
    EXPECT_EQ(program.value_name(program.nodes[0].results[0]), "y$1");
    EXPECT_EQ(program.value_name(program.nodes[2].results[0]), "y$0$2");
}

TEST(ir, names_are_utf8) {
    for (const std::string &name : std::vector<std::string>{"", "\xff", "\xc0\x80", "\xed\xa0\x80", "\xf5\x80\x80\x80", "a\xc3",
                                                            "\xe0\x9f\xbf", std::string("a\0b", 3)})
        EXPECT_FALSE(is_name(name)) << quote(name);
    for (const std::string name : {"\x7f", "\xc2\x80", "\xed\x9f\xbf", "\xee\x80\x80", "\xf4\x8f\xbf\xbf"})
        EXPECT_TRUE(is_name(name)) << quote(name);
}

TEST(ir, parses_every_part) {
    const Program program = parse(everything);
    EXPECT_EQ(program.name, "sgd_step");
    EXPECT_EQ(program.attributes.at("rounding").word, "down");
    EXPECT_EQ(program.symbols, (std::vector<Symbol>{{"b", 1, 4096, 16, {16, 64}}, {"n"}}));
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
