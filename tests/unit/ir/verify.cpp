#include "ir/verify.h"

#include "ir/text.h"

#include <functional>
#include <gtest/gtest.h>

namespace scalide {

namespace {

Program two_nodes() {
    return parse_program(R"(program head(z: f32[b]) -> (s: f32[]) {
  s = reduce_sum(z) {axes: [0]} : f32[]
}

program p(x: f32[b, 4], v: f32[b], w: f16[b, 4] scaled inout) -> (y: f32[b, 4], w = w1) {
  y = mul(x, x) : f32[b, 4]
  w1 = convert_element_type(y) {dtype: f16} : f16[b, 4]
  s = call(v) {program: head} : f32[]
}
)",
                         "t.scl");
}

std::string error_of(const Program &program, const std::string &after) {
    try {
        verify(program, after);
    } catch (const std::exception &error) {
        return error.what();
    }
    return "no error";
}

/// The error of two_nodes() after a change.
std::string error_after(const std::function<void(Program &)> &change) {
    Program program = two_nodes();
    change(program);
    return error_of(program, "");
}

} // namespace

TEST(ir, verifies_a_good_program) { EXPECT_EQ(error_of(two_nodes(), ""), "no error"); }

TEST(ir, verify_blames_the_pass) {
    Program program = two_nodes();
    program.nodes[0].operands[0] = 99;
    EXPECT_THROW(verify(program, "fuse"), InternalError);
    EXPECT_EQ(error_of(program, "fuse"), "internal error: after fuse: t.scl:6:3: mul.operands: must be the index of a value, got 99");
    EXPECT_THROW(verify(program, ""), UserError);
}

TEST(ir, verify_checks_nodes) {
    const std::string at = "t.scl:6:3: ";
    EXPECT_EQ(error_after([](Program &p) { p.nodes[0].operands[0] = p.nodes[1].results[0]; }),
              at + "mul.operands: must be defined before it is used, got w1");
    EXPECT_EQ(error_after([](Program &p) { p.nodes[0].results.clear(); }), at + "mul.results: a node must have at least one result");
    EXPECT_EQ(error_after([](Program &p) { p.nodes[0].results[0] = -7; }), at + "mul.results: must be the index of a value, got -7");
    EXPECT_EQ(error_after([](Program &p) { p.nodes[0].op = "m l"; }),
              at + "p: the name of an operator must consist of letters, digits and _ . $, got \"m l\"");
    EXPECT_EQ(error_after([](Program &p) { p.nodes[0].results[0] = 0; }), at + "mul.results: each value must be defined once, got x");
    EXPECT_EQ(error_after([](Program &p) { p.values[p.nodes[0].results[0]].name = "x"; }),
              at + "mul.results: the name must be unique, got x");
    EXPECT_EQ(error_after([](Program &p) { p.values[p.nodes[0].results[0]].name = "\xff"; }),
              at + "mul.results: the name must be UTF-8 without zero bytes, and not empty, got \"\xff\"");
    EXPECT_EQ(error_after([](Program &p) { p.values[p.nodes[0].results[0]].part.kind = ArrayPart::Kind::data; }),
              at + "p.y: must be a part of a named array, got \"\"");
    EXPECT_EQ(error_after([](Program &p) { p.nodes[0].attributes["shape"] = to_attribute({Extent::symbol("q")}); }),
              at + "mul.shape: extents may contain only symbols of the arguments, got q");
}

TEST(ir, verify_checks_types) {
    const auto error_with = [](const Type &type) { return error_after([&](Program &p) { p.values[p.nodes[0].results[0]].type = type; }); };
    EXPECT_EQ(error_with(unknown_type()), "t.scl:6:3: p.y: must have a type");
    EXPECT_EQ(error_with({Dtype::f32, {Extent(-2)}}), "t.scl:6:3: p.y: must have extents from 0 to 2147483647, got -2");
    EXPECT_EQ(error_with({Dtype::f32, {Extent::symbol("q")}}), "t.scl:6:3: p.y: extents may contain only symbols of the arguments, got q");
    EXPECT_EQ(error_with({Dtype::f64, {Extent(4)}}),
              "t.scl:6:3: p.y: must be a scalar, because it is f64 (f32 arrays are possible), got f64[4]");
}

TEST(ir, verify_checks_symbols_and_arguments) {
    EXPECT_EQ(error_after([](Program &p) { p.name = ""; }), "program: the name must be UTF-8 without zero bytes, and not empty, got \"\"");
    EXPECT_EQ(error_after([](Program &p) { p.symbols.push_back({"b"}); }), "p.b: must be declared once, got twice");
    EXPECT_EQ(error_after([](Program &p) { p.symbols[0].name = "4"; }),
              "p.\"4\": the name must consist of letters, digits and _ . $, got \"4\"");
    EXPECT_EQ(error_after([](Program &p) { p.symbols[0].minimum = -1; }),
              "p.b: the range must be within 0..2147483647, got -1..2147483647");
    EXPECT_EQ(error_after([](Program &p) { p.symbols[0].multiple = 0; }), "p.b: the step must be at least 1, got 0");
    EXPECT_EQ(error_after([](Program &p) { p.symbols.clear(); }), "p.x: extents may contain only symbols of the arguments, got b");
    EXPECT_EQ(error_after([](Program &p) { p.arguments[1].value = 0; }), "p.arguments: each value must be defined once, got x");
    EXPECT_EQ(error_after([](Program &p) {
                  p.values[0].type.shape = {65536, 32768};
              }),
              "p.x: must have at most 2146435072 elements, got f32[65536, 32768]. Split the array");
}

TEST(ir, verify_checks_parts) {
    const auto error = [](const std::string &arguments, const std::string &results) {
        return error_of(parse_program("program p(" + arguments + ") -> (" + results + ") {\n}\n", "t.scl"), "");
    };
    const std::string good = "a: f16[2] data of x, s: f32[] scale of x";
    EXPECT_EQ(error(good, "r: f32[] = s"), "no error");
    EXPECT_EQ(error("a: f16[2] data of x", "r: f16[2] = a"), "p.a: must be directly followed by the scale of x");
    EXPECT_EQ(error("a: f16[2] data of x, b: f32[2], s: f32[] scale of x", "r: f32[] = s"),
              "p.a: must be directly followed by the scale of x");
    EXPECT_EQ(error("s: f32[] scale of x", "r: f32[] = s"), "p.s: must directly follow the data of x");
    EXPECT_EQ(error("a: f16[2] data of x, s: f32[1] scale of x", "r: f16[2] = a"), "p.s: must be f32[], because it is a scale, got f32[1]");
    EXPECT_EQ(error(good + ", x: f32[]", "r: f32[] = s"), "p.x: the name of its array must be unique, got x");
    EXPECT_EQ(error("a: f16[2] form of x", "r: f16[2] = a"),
              "p.a: must be a whole array, or the data or scale of a named array, got a form of x");
    EXPECT_EQ(error("a: f16[2] scaled data of x, s: f32[] scale of x", "r: f32[] = s"),
              "p.a: must not be scaled, because it is a part of x, got scaled");
    EXPECT_EQ(error(good, "r: f16[2] data of y = a"), "p.r: must be directly followed by the scale of y");
}

TEST(ir, verify_shows_names_as_the_text_has_them) {
    EXPECT_EQ(error_after([](Program &p) {
                  p.name = "a b";
                  p.values[p.nodes[0].results[0]].name = "y\n";
                  p.values[p.nodes[0].results[0]].type = unknown_type();
              }),
              "t.scl:6:3: \"a b\".\"y\\x0a\": must have a type");
}

TEST(ir, verify_checks_results) {
    EXPECT_EQ(error_after([](Program &p) { p.results[1].value = p.results[0].value; }),
              "p.w: must have the type of the inout argument, f16[b, 4], got f32[b, 4] (y)");
    EXPECT_EQ(error_after([](Program &p) { p.results[1].scaled = false; }),
              "p.w: must be scaled exactly if its argument is scaled, got plain");
    EXPECT_EQ(error_after([](Program &p) { p.results[1].name = "u"; }), "p.u: must have the name of its argument, got w");
    EXPECT_EQ(error_after([](Program &p) { p.results[1].argument = 3; }), "p.w: must be an argument or -1, got 3");
    EXPECT_EQ(error_after([](Program &p) { p.results[1].name = "y"; }), "p.y: the name of a result must be unique");
    EXPECT_EQ(error_after([](Program &p) { p.results[0].name = ""; }),
              "p.\"\": the name must be UTF-8 without zero bytes, and not empty, got \"\"");
    const auto other_shape = [](Program &p) { p.values[p.results.back().value].type.shape[1] = Extent(5); };
    EXPECT_NE(error_after(other_shape).find("must have the type of the inout argument, f16[b, 4], got f16[b, 5]"), std::string::npos);
    EXPECT_EQ(error_after([](Program &p) { p.results.pop_back(); }), "p.w: an inout argument must be exactly one result, got 0 results");
    EXPECT_EQ(error_after([](Program &p) { p.arguments[2].inout = false; }), "p.w: an argument that is a result must be inout");
    EXPECT_EQ(error_after([](Program &p) { p.results[0].value = 77; }), "p.y: must be the index of a value, got 77");
}

TEST(ir, verify_checks_calls) {
    const std::string at = "t.scl:8:3: ";
    EXPECT_EQ(error_after([](Program &p) { p.nodes[2].attributes = {}; }), at + "call.program: must be the name of a sub-program");
    EXPECT_EQ(error_after([](Program &p) { p.nodes[2].attributes["program"] = "tail"; }),
              at + "call.program: must be the name of a sub-program that is defined before, got tail");
    EXPECT_EQ(error_after([](Program &p) { p.nodes[2].operands.clear(); }),
              at + "call.operands: the number must be that of its program, 1, got 0");
    EXPECT_EQ(error_after([](Program &p) { p.nodes[2].operands[0] = 0; }),
              at + "call.operands: number 0 must be f32[b], got f32[b, 4] (x)");
    EXPECT_EQ(error_after([](Program &p) { p.values[p.nodes[2].results[0]].type.dtype = Dtype::i32; }),
              at + "call.results: number 0 must be f32[], got i32[] (s)");
}

TEST(ir, verify_checks_sub_programs) {
    EXPECT_EQ(error_after([](Program &p) { p.programs[0].nodes[0].operands[0] = 5; }),
              "t.scl:2:3: reduce_sum.operands: must be the index of a value, got 5");
    EXPECT_EQ(error_after([](Program &p) { p.programs.push_back(p.programs[0]); }), "internal error: two sub-programs have the name head");
    EXPECT_EQ(error_after([](Program &p) { p.programs[0].programs.resize(1); }),
              "internal error: sub-program head has sub-programs of its own");
}

} // namespace scalide
