#include "interpret/interpret.h"
#include "ir/text.h"
#include "support.h"
#include "transforms/analysis/passes.h"
#include "transforms/pipeline.h"
#include <gtest/gtest.h>

// Loops and branches in the pipeline: types, and unrolling, whose results are those of the interpreter.
namespace scalide {

namespace {

Program parse(const std::string &text) { return parse_program("program p" + text, "t.scl"); }

CompileOptions unrolling(Unroll unroll) {
    CompileOptions options;
    options.unroll = unroll;
    return options;
}

/// Runs a program before and after the passes, unrolled and as loops, on small integers, and expects the same bits.
void expect_same(const std::string &text) {
    const Program program = parse(text);
    std::vector<Array> inputs;
    int number = 0;
    for (const Argument &argument : program.arguments) {
        const Type &type = program.type(argument.value);
        Array array{type.dtype, {}, {}};
        size_t count = 1;
        for (const Extent &extent : type.shape) {
            array.shape.push_back(extent.evaluate({{"n", 3}}));
            count *= static_cast<size_t>(array.shape.back());
        }
        for (size_t i = 0; i < count; i++) array.data.push_back(type.dtype == Dtype::boolean ? 1 : number++ % 5 - 1);
        inputs.push_back(array);
    }
    const auto expected = interpret(infer_types(program, rules()), inputs, rules(), Mode::stored);
    for (const Unroll unroll : {Unroll::all, Unroll::possible, Unroll::short_ones, Unroll::none}) {
        const auto got = interpret(compile(program, rules(), unrolling(unroll)), inputs, rules(), Mode::stored);
        for (size_t i = 0; i < expected.size(); i++) {
            EXPECT_EQ(got[i].shape, expected[i].shape) << text;
            EXPECT_EQ(got[i].data, expected[i].data) << text;
        }
    }
}

std::string error(const std::string &text) {
    return error_of([&] { to_base_operators(parse(text), rules(), unrolling(Unroll::all)); });
}

/// The error about a loop that cannot be unrolled.
std::string must_be_short(const std::string &op, const std::string &got) {
    return "t.scl:2:3: " + op + ": a loop that is unrolled must have a static number of at most 64 steps, got " + got +
           ". Loops with 'unroll', and loops under policies that round operands at random, are unrolled: build with another policy, or "
           "write the loop in the application";
}

} // namespace

TEST(transforms, unrolled_loops_are_the_loops) {
    for (const std::string attributes : {"{length: 4}", "{length: 4, reverse: true}"})
        expect_same("(c: f32[n], xs: f32[4, n]) -> (s: f32[n], ys: f32[4, n], steps: i32[4]) {\n  s, ys, steps = scan(c, xs) " +
                    attributes +
                    " with\n    body(c: f32[n] inout, x: f32[n] each, i: i32[] step) -> (c = next, y: f32[n] = next, i: i32[]) {\n"
                    "      both = mul(c, x)\n      next = add(both, 1)\n    }\n}\n");
    expect_same("(xs: f32[4, n]) -> (ys: f32[4, n]) {\n  ys = map(xs) {length: 4} with\n    body(x: f32[n] each) -> (y: f32[n]) {\n"
                "      y = softmax(x) {axes: [0]}\n    }\n}\n");
    expect_same("(a: f32[], b: f32[]) -> (x: f32[], y: f32[]) {\n  x, y = fori(a, b) {lower: -2, upper: 3} with\n"
                "    body(i: i32[] step, a: f32[] inout, b: f32[] inout) -> (a = b, b = sum) {\n"
                "      f = convert_element_type(i) {dtype: f32}\n      more = add(a, f)\n      sum = add(more, b)\n    }\n}\n");
    expect_same("(xs: f32[0, n], c: f32[n]) -> (s: f32[n], ys: f32[0, n]) {\n  s, ys = scan(c, xs) {length: 0} with\n"
                "    body(c: f32[n] inout, x: f32[n] each) -> (c = next, y: f32[n] = x) {\n      next = add(c, x)\n    }\n}\n");
}

/// The number of a step may depend on a symbol.
TEST(transforms, loops_between_symbols) {
    expect_same("(x: f32[n]) -> (s: f32[], q: f32[n]) {\n  s = fori(0.0) {lower: n, upper: n + 3} with\n"
                "    body(s: f32[] inout, i: i32[] step) -> (s = next) {\n      f = convert_element_type(i) {dtype: f32}\n"
                "      next = add(s, f)\n    }\n  q = neg(x)\n}\n");
}

/// Two carries that begin with one array of zeros.
TEST(transforms, carries_of_one_value_are_two) {
    expect_same("(xs: f32[3, n]) -> (p: f32[n], q: f32[n]) {\n  p, q = scan(0.0, 0.0, xs) {length: 3} with\n"
                "    body(p: f32[n] inout, q: f32[n] inout, x: f32[n] each) -> (p = more, q = less) {\n"
                "      more = add(p, x)\n      less = sub(q, x)\n    }\n}\n");
}

TEST(transforms, branches_become_selections) {
    expect_same("(p: bool[], x: f32[n]) -> (y: f32[n], z: f32[]) {\n  y, z = cond(p, x) with\n"
                "    yes(x: f32[n]) -> (a: f32[n] = x, b: f32[]) {\n      b = reduce_sum(x) {axes: [0]}\n    },\n"
                "    no(x: f32[n]) -> (a: f32[n], b: f32[]) {\n      a = neg(x)\n      b = reduce_max(x) {axes: [0]}\n    }\n}\n");
    for (const std::string index : {"-3", "0", "1", "2", "9"})
        expect_same("(x: f32[n]) -> (y: f32[n]) {\n  i = constant() {value: " + index +
                    ", dtype: i32} : i32[]\n  y = switch(i, x) with\n"
                    "    zero(x: f32[n]) -> (a: f32[n] = x) {\n    },\n    one(x: f32[n]) -> (a: f32[n]) {\n      a = neg(x)\n    },\n"
                    "    two(x: f32[n]) -> (a: f32[n]) {\n      a = mul(x, x)\n    }\n}\n");
}

TEST(transforms, loops_nest_and_call) {
    const std::string text =
        "program square(v: f32[3]) -> (w: f32[3]) {\n  w = map(v) {length: 3} with\n"
        "    body(e: f32[] each) -> (r: f32[]) {\n      r = mul(e, e)\n    }\n}\n"
        "program p(xs: f32[2, 3], p: bool[]) -> (y: f32[3]) {\n  y = scan(0.0, xs, p) {length: 2} with\n"
        "    body(y: f32[3] inout, x: f32[3] each, p: bool[]) -> (y = next) {\n      next = cond(p, y, x) with\n"
        "        yes(y: f32[3], x: f32[3]) -> (r: f32[3]) {\n          s = call(x) {program: square}\n"
        "          r = add(y, s)\n        },\n        no(y: f32[3], x: f32[3]) -> (r: f32[3] = x) {\n        }\n    }\n}\n";
    const Program base = to_base_operators(parse_program(text, "t.scl"), rules(), {});
    const auto results = interpret(base, {{Dtype::f32, {2, 3}, {1, 2, 3, 4, 5, 6}}, {Dtype::boolean, {}, {1}}}, rules(), Mode::stored);
    EXPECT_EQ(results[0].data, (std::vector<double>{17, 29, 45}));
}

/// d (w^3 x) / dw of a loop that multiplies by w three times.
TEST(transforms, loops_have_gradients) {
    const std::string text = "program f(w: f32[], x: f32[]) -> (y: f32[]) {\n  y = fori(w, x) {lower: 0, upper: 3} with\n"
                             "    body(w: f32[], x: f32[] inout) -> (x = next) {\n      next = mul(x, w)\n    }\n}\n"
                             "program p(w: f32[], x: f32[]) -> (g: f32[]) {\n  g = grad(w, x) {program: f, wrt: [w]}\n}\n";
    const Program base = to_base_operators(parse_program(text, "t.scl"), rules(), {});
    EXPECT_EQ(interpret(base, {{Dtype::f32, {}, {2}}, {Dtype::f32, {}, {5}}}, rules(), Mode::stored)[0].data[0], 3 * 4 * 5);
}

TEST(transforms, loops_that_cannot_be_unrolled) {
    const std::string body = " with\n    body(c: f32[] inout, x: f32[] each) -> (c = next) {\n      next = add(c, x)\n    }\n}\n";
    EXPECT_EQ(error("(xs: f32[65]) -> (s: f32[]) {\n  s = scan(0.0, xs) {length: 65}" + body), must_be_short("scan", "65"));
    EXPECT_EQ(error("(xs: f32[t]) -> (s: f32[]) {\n  s = scan(0.0, xs) {length: t}" + body), must_be_short("scan", "t"));
    std::string nested = "      next = add(x, 1)\n";
    for (int depth = 0; depth < 4; depth++)
        nested = "      next = fori(x) {lower: 0, upper: 64} with\n    body(x: f32[] inout) -> (x = next) {\n" + nested + "    }\n";
    EXPECT_EQ(error("(x: f32[]) -> (s: f32[] = next) {\n" + nested + "}\n"),
              "t.scl:8:7: fori: unrolled loops must have at most 1000000 nodes, got more. Write the outer loop in the application");
    EXPECT_EQ(
        error("(x: f32[]) -> (s: f32[]) {\n  s = while(x) with\n    test(x: f32[]) -> (more: bool[]) {\n      more = lt(x, 5)\n    },\n"
              "    body(x: f32[] inout) -> (x = next) {\n      next = add(x, 1)\n    }\n}\n"),
        must_be_short("while", "a number that its test decides"));
}

} // namespace scalide
