#include "ir/program.h"

#include "ir/rewrite.h"
#include "ir/text.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>

namespace scalide {

namespace {

Program parse(const std::string &body) {
    return parse_program("program p(x: f32[b, 4], m: bool[b, 4], i: i32[b]) -> (r: f32[b, 4]) {\n" + body + "}\n", "t.scl");
}

/// The nodes of a program with this body.
std::string nodes_of(const std::string &body) {
    const std::string text = to_string(parse(body));
    return text.substr(text.find('\n') + 1);
}

const Type scalar{Dtype::f32, {}};

} // namespace

TEST(ir, numbers_become_constants) {
    EXPECT_EQ(nodes_of("  r = mul(x, 2)\n"), "  r$0 = constant() {value: 2.0} : f32[]\n"
                                             "  r$1 = broadcast_in_dim(r$0) {dims: [], shape: [b, 4]} : f32[b, 4]\n"
                                             "  r = mul(x, r$1) : f32[b, 4]\n}\n");
    EXPECT_EQ(nodes_of("  r = f(-inf, 1e-3)\n"), "  r$0 = constant() {value: -inf} : f32[]\n"
                                                 "  r$1 = constant() {value: 0.001} : f32[]\n"
                                                 "  r = f(r$0, r$1) : f32[b, 4]\n}\n");
}

TEST(ir, numbers_take_the_dtype_of_the_values) {
    const Program integers = parse("  j = add(i, 1) : i32[b]\n  r = neg(x)\n");
    EXPECT_EQ(to_string(integers.type(integers.nodes[1].results[0])), "i32[b]");
    EXPECT_EQ(integers.nodes[0].attributes.at("value"), Attribute(1));
    const Program selected = parse("  r = select_n(m, x, 0.0)\n");
    EXPECT_EQ(to_string(selected.type(selected.nodes[2].operands[2])), "f32[b, 4]");
}

TEST(ir, numbers_stay_scalars_where_shapes_are_unknown_or_not_shared) {
    const Program unknown = parse("  y = neg(x)\n  r = mul(y, 0.5)\n");
    EXPECT_EQ(to_string(unknown.type(unknown.nodes[2].operands[1])), "f32[]");
    const Program padded = parse("  r = pad(x, 0.0) {low: [0, 0], high: [0, 0], interior: [0, 0]}\n");
    EXPECT_EQ(to_string(padded.type(padded.nodes[1].operands[1])), "f32[]");
}

TEST(ir, fresh_names) {
    Program program;
    const auto name = [&](const std::string &wish) { return program.value_name(add_value(program, wish, scalar)); };
    EXPECT_EQ(name("x"), "x");
    EXPECT_EQ(name("x"), "x1");
    EXPECT_EQ(name("x01"), "x01");
    EXPECT_EQ(name("x3"), "x3");
    EXPECT_EQ(name("x"), "x2");
    EXPECT_EQ(name("x"), "x4");
    EXPECT_EQ(name("x1"), "x11");
    Node node;
    node.op = "top_k";
    const std::vector<ValueId> results = add_node(program, node, {scalar, scalar});
    EXPECT_EQ(program.value_name(results[1]), "top_k1");
    EXPECT_EQ(program.nodes[0].results, results);
}

TEST(ir, symbols_are_declared_from_arguments) {
    Program program = parse("  r = neg(x)\n");
    program.symbols = {{"n", 1, 8, 1}};
    declare_symbols(program);
    EXPECT_EQ(program.symbols, (std::vector<Symbol>{{"n", 1, 8, 1}, {"b"}}));
}

TEST(ir, counts_uses_and_finds_producers) {
    const Program program = parse("  y = mul(x, x) : f32[b, 4]\n  r = mul(x, y)\n");
    EXPECT_EQ(count_uses(program), (std::vector<int>{3, 0, 0, 1, 1}));
    EXPECT_EQ(producers(program), (std::vector<int>{-1, -1, -1, 0, 1}));
    EXPECT_THROW(program.program("q"), InternalError);
}

TEST(ir, rewriter_replaces_values) {
    const Program program = parse("  y = neg(x) : f32[b, 4]\n  z = neg(y) : f32[b, 4]\n  r = mul(z, y)\n");
    Rewriter rewriter(program);
    rewriter.copy_arguments();
    rewriter.copy(program.nodes[0]);
    EXPECT_THROW(rewriter(program.nodes[1].results[0]), InternalError);
    rewriter.map(program.nodes[1].results[0], rewriter(program.arguments[0].value));
    EXPECT_TRUE(rewriter.is_mapped(program.nodes[1].results[0]));
    rewriter.copy(program.nodes[2]);
    rewriter.copy_results();
    const Program expected = parse("  y = neg(x) : f32[b, 4]\n  r = mul(x, y)\n");
    EXPECT_EQ(to_string(rewriter.take()), to_string(expected));
}

TEST(ir, dead_nodes_go) {
    const Program program = parse("  y = neg(x) : f32[b, 4]\n  z = neg(y) : f32[b, 4]\n  r, u = f(x) : f32[b, 4], f32[]\n");
    EXPECT_EQ(to_string(remove_dead_nodes(program)), to_string(parse("  r, u = f(x) : f32[b, 4], f32[]\n")));
}

TEST(ir, equal_kernels_have_equal_canonical_text) {
    const Program one = parse_program(R"(program head(z: f32[b]) -> (s: f32[]) {
  s = reduce_sum(z) {axes: [0]} : f32[]
}
program one {kind: map} [c in 1..4, b in 2..8] (x: f32[b], w: f32[b] inout) -> (y: f32[b], w = y, l: f32[]) {
  dead = neg(x) : f32[b]
  scope "mlp" {
    t = mul(x, x) : f32[b]
  }
  y = add(t, w) : f32[b] cotangent
  l = call(y) {program: head} : f32[]
}
)",
                                      "one.scl");
    const Program two = parse_program(R"(program tail(q: f32[b]) -> (u: f32[]) {
  u = reduce_sum(q) {axes: [0]} : f32[]
}

program two {kind: map} [b in 2..8] (in: f32[b], out: f32[b] inout) -> (n: f32[b] = m, out = m, l: f32[] = k) {
  v7 = mul(in, in) : f32[b]
  m = add(v7, out) : f32[b]
  k = call(m) {program: tail} : f32[]
}
)",
                                      "two.scl");
    EXPECT_FALSE(equal(one, two));
    EXPECT_TRUE(equal(canonical(one), canonical(two)));
    EXPECT_EQ(to_string(canonical(one)), R"(program p0(a0: f32[b]) -> (r0: f32[] = v0) {
  v0 = reduce_sum(a0) {axes: [0]} : f32[]
}

program kernel {kind: map} [b in 2..8] (a0: f32[b], a1: f32[b] inout) -> (r0: f32[b] = v1, a1 = v1, r2: f32[] = v2) {
  v0 = mul(a0, a0) : f32[b]
  v1 = add(v0, a1) : f32[b]
  v2 = call(v1) {program: p0} : f32[]
}
)");
}

TEST(ir, attributes_compare_and_convert) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    EXPECT_EQ(Attribute(nan), Attribute(nan));
    EXPECT_FALSE(Attribute(0.0) == Attribute(-0.0));
    EXPECT_FALSE(Attribute(1) == Attribute(1.0));
    EXPECT_EQ(to_integers(to_attribute(std::vector<int64_t>{3, -1})), (std::vector<int64_t>{3, -1}));
    const std::vector<Extent> extents{Extent::symbol("b"), 4};
    EXPECT_EQ(to_extents(to_attribute(extents)), extents);
    EXPECT_EQ(to_extents(parse_attribute("[b, 4]", {})), extents);
    EXPECT_EQ(to_number(Attribute(3)), 3.0);
    EXPECT_EQ(to_number(Attribute(0.5)), 0.5);
    EXPECT_THROW(to_number(Attribute("x")), InternalError);
    EXPECT_THROW(to_integers(Attribute(3)), InternalError);
    EXPECT_THROW(to_integers(to_attribute(extents)), InternalError);
    EXPECT_THROW(to_extents(parse_attribute("[0.5]", {})), InternalError);
}

TEST(ir, attributes_print_and_parse) {
    const std::vector<std::pair<Attribute, std::string>> cases = {
        {Attribute(-3), "-3"},
        {Attribute(3.0), "3.0"},
        {Attribute(1e300), "1e+300"},
        {Attribute(0.1), "0.1"},
        {Attribute(-0.0), "-0.0"},
        {Attribute(5e-324), "5e-324"},
        {Attribute(INFINITY), "inf"},
        {Attribute(std::copysign(NAN, -1.0)), "-nan"},
        {Attribute("mlp/0.w_1"), "mlp/0.w_1"},
        {Attribute("nan"), "\"nan\""},
        {Attribute("0x"), "\"0x\""},
        {Attribute("a$b"), "\"a$b\""},
        {Attribute(""), "\"\""},
        {Attribute("say \"\\\n\x7f"), "\"say \\\"\\\\\\x0a\\x7f\""},
        {Attribute(Extent::symbol("b") * 2 - 1), "2*b - 1"},
        {Attribute(std::vector<Attribute>{1, "x", std::vector<Attribute>{}}), "[1, x, []]"},
    };
    for (const auto &[attribute, text] : cases) {
        EXPECT_EQ(to_string(attribute), text);
        EXPECT_EQ(parse_attribute(text, {}), attribute) << text;
    }
    EXPECT_EQ(to_string(Attributes{{"preferred", "f32"}, {"axes", to_attribute(std::vector<int64_t>{1})}}), "{axes: [1], preferred: f32}");
    EXPECT_EQ(to_string(Attributes{}), "");
}

TEST(ir, words_and_symbols_stay_apart) {
    Program program = parse("  r = f(x) {a: b, c: \"b\", d: q}\n");
    EXPECT_EQ(program.nodes[0].attributes.at("a"), Attribute(Extent::symbol("b")));
    EXPECT_EQ(program.nodes[0].attributes.at("c"), Attribute("b"));
    EXPECT_EQ(program.nodes[0].attributes.at("d"), Attribute("q"));
    EXPECT_EQ(nodes_of("  r = f(x) {a: b, c: \"b\", d: q}\n"), "  r = f(x) {a: b, c: \"b\", d: q} : f32[b, 4]\n}\n");
    const Program header = parse_program("program p {a: b, c: \"b\"} (x: f32[b]) -> () {}", "t.scl");
    EXPECT_EQ(header.attributes.at("a"), Attribute(Extent::symbol("b")));
    EXPECT_EQ(header.attributes.at("c"), Attribute("b"));
}

} // namespace scalide
