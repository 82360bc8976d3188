#include "interpret/interpret.h"
#include "ir/regions.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "support.h"
#include "support/programs/program_of_operators.h"
#include "support/programs/program_of_regions.h"
#include "transforms/analysis/operators.h"
#include "transforms/analysis/passes.h"
#include "transforms/calls/unroll.h"
#include "transforms/pipeline.h"
#include <gtest/gtest.h>

// Gradients of loops and branches: those of the unrolled program, what they store, and where they are refused.
namespace scalide {

namespace {

/// Makes the sum of the squares of all float results the only result.
Program with_loss(Program program) {
    Builder builder(rules(), program);
    ValueId loss = builder.constant(0);
    for (const Result &result : program.results) {
        const Type type = program.type(result.value);
        if (!is_float(type.dtype)) continue;
        const ValueId square = builder.add_one("mul", {result.value, result.value});
        const ValueId sum = builder.add_one("reduce_sum", {square}, reduce_attributes(count_up(type.rank())));
        loss = builder.add_one("add", {loss, builder.convert(sum, Dtype::f32)});
    }
    for (Argument &argument : program.arguments) argument.inout = false;
    program.results = {{"loss", loss}};
    return program;
}

/// Makes the gradients by all float arguments the results.
Program gradient_of(Program program) {
    std::vector<ValueId> wrt;
    for (const Argument &argument : program.arguments)
        if (is_float(program.type(argument.value).dtype)) wrt.push_back(argument.value);
    const std::vector<ValueId> gradients = append_gradient(program, rules(), program.results[0].value, wrt);
    program.results.clear();
    for (const ValueId gradient : gradients) program.results.push_back({program.value_name(gradient), gradient});
    verify(program, "append_gradient");
    return program;
}

Program unrolled(Program program) {
    unroll_regions(program, rules());
    return program;
}

Program with_remat(Program program) {
    const auto mark = [](Program region) {
        for (Node &node : region.nodes)
            if (find_region_kind(node.op) && find_region_kind(node.op)->is_loop) node.attributes["remat"] = "true";
        return region;
    };
    return mark(map_regions(std::move(program), mark));
}

/// Runs both programs on the same inputs and expects the same numbers, but for the order of sums.
void expect_same(const Program &program, const Program &expected, const std::vector<Array> &inputs) {
    const std::vector<Array> got = interpret(program, inputs, rules(), Mode::real), want = interpret(expected, inputs, rules(), Mode::real);
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); i++) {
        ASSERT_EQ(got[i].shape, want[i].shape);
        for (size_t k = 0; k < got[i].data.size(); k++)
            if (!std::isnan(got[i].data[k]) || !std::isnan(want[i].data[k])) // the largest of no elements, times 0
                ASSERT_NEAR(got[i].data[k], want[i].data[k], 1e-9 * (1 + std::abs(want[i].data[k]))) << program.results[i].name << " " << k;
    }
}

/// The gradients of a text are those of the text with its loops unrolled. Returns the gradient.
Program checked_gradient(const std::string &text, const std::vector<Array> &inputs) {
    const Program program = with_loss(typed(text)), gradient = gradient_of(program);
    SCOPED_TRACE(to_string(gradient));
    expect_same(gradient, gradient_of(unrolled(program)), inputs);
    expect_same(gradient_of(with_remat(program)), gradient, inputs);
    return gradient;
}

Array array(std::vector<int64_t> shape, std::vector<double> data, Dtype dtype = Dtype::f32) {
    return {dtype, std::move(shape), std::move(data)};
}

const std::string recurrence = "(u: f32[2, 2], b: f32[2], h: f32[2], xs: f32[3, 2]) -> (h1: f32[2], ys: f32[3, 2]) {\n"
                               "  h1, ys = scan(u, b, h, xs) {length: 3} with\n"
                               "    body(u: f32[2, 2], b: f32[2], h: f32[2] inout, x: f32[2] each) -> (h = next, y: f32[2] = next) {\n"
                               "      p = dot_general(h, u) {contract: [[0], [0]]}\n      e = exp(b)\n      s = add(p, x)\n"
                               "      q = mul(s, e)\n      next = tanh(q)\n    }\n}\n";

const Node &last_loop(const Program &program) {
    const auto found = std::find_if(program.nodes.rbegin(), program.nodes.rend(), [](const Node &node) { return !node.regions.empty(); });
    return *found;
}

int count_nodes(const Program &program, const std::string &op, Role role) {
    return static_cast<int>(std::ranges::count_if(program.nodes, [&](const Node &node) { return node.op == op && node.role == role; }));
}

} // namespace

TEST(transforms, gradients_of_regions_are_those_of_the_unrolled_program) {
    for (uint32_t seed = 1; seed <= 300; seed++) {
        std::mt19937 random(seed);
        const Program program = with_loss(infer_types(program_of_regions(random), rules()));
        SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + to_string(program));
        const std::vector<Array> inputs = draw_inputs(program, {{"b", 2}}, random);
        const Program expected = gradient_of(unrolled(program));
        expect_same(gradient_of(program), expected, inputs);
        expect_same(gradient_of(with_remat(program)), expected, inputs);
        if (HasFailure()) return;
    }
}

TEST(transforms, gradients_of_gradients_of_regions) {
    for (uint32_t seed = 1; seed <= 60; seed++) {
        std::mt19937 random(seed);
        const Program program = with_loss(infer_types(program_of_regions(random), rules()));
        SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + to_string(program));
        const std::vector<Array> inputs = draw_inputs(program, {{"b", 2}}, random);
        const Program expected = gradient_of(with_loss(gradient_of(unrolled(program))));
        expect_same(gradient_of(with_loss(gradient_of(program))), expected, inputs);
        expect_same(gradient_of(with_loss(gradient_of(with_remat(program)))), expected, inputs);
        if (HasFailure()) return;
    }
}

/// The carry before a step and one factor are stacked. What depends on captures alone is computed once.
TEST(transforms, a_loop_stacks_what_its_gradient_reads) {
    const std::vector<Array> inputs{array({2, 2}, {.1, .2, .3, -.4}), array({2}, {.5, -.1}), array({2}, {1, 2}),
                                    array({3, 2}, {1, .5, -1, 2, .1, .3})};
    const Program gradient = checked_gradient(recurrence, inputs);
    EXPECT_EQ(gradient.nodes[0].results.size(), 2 + 2);
    const Node &backward = last_loop(gradient);
    EXPECT_EQ(to_string(backward.attributes), "{length: 3, reverse: true}");
    for (const Node &node : backward.regions[0]->nodes) EXPECT_EQ(node.role, Role::cotangent) << node.op;
    EXPECT_EQ(count_nodes(*backward.regions[0], "exp", Role::primal), 0);
    EXPECT_EQ(count_nodes(gradient, "exp", Role::primal), 1);
}

/// With `remat`, only carries are stacked, and the gradient computes the step again. These nodes are primal.
TEST(transforms, remat_stacks_carries_alone) {
    const Program gradient = gradient_of(with_remat(with_loss(typed(recurrence))));
    EXPECT_EQ(gradient.nodes[0].results.size(), 2 + 1);
    const Program &backward = *last_loop(gradient).regions[0];
    EXPECT_EQ(count_nodes(backward, "exp", Role::primal), 1);
    EXPECT_EQ(count_nodes(backward, "tanh", Role::primal), 1);
    EXPECT_EQ(count_nodes(backward, "dot_general", Role::cotangent), 2);
}

/// Counters, and carries on which no loss depends, have no cotangents.
TEST(transforms, inactive_carries_have_no_cotangents) {
    const Program gradient = checked_gradient(
        "(x: f32[2], i: i32[], z: f32[2], v: f32[3, 2]) -> (y: f32[2]) {\n  y, k, q = scan(x, i, z, v) {length: 3} with\n"
        "    body(x: f32[2] inout, k: i32[] inout, q: f32[2] inout, e: f32[2] each) -> (x = next, k = more, q = r) {\n"
        "      more = add(k, 1)\n      f = convert_element_type(k) {dtype: f32}\n      s = sin(e)\n      c = stop_gradient(s)\n"
        "      m = mul(x, f)\n      next = add(m, c)\n      r = add(q, x)\n    }\n}\n",
        {array({2}, {1, 2}), array({}, {2}, Dtype::i32), array({2}, {3, 4}), array({3, 2}, {1, 2, 3, 4, 5, 6})});
    EXPECT_EQ(last_loop(gradient).results.size(), 1);
    EXPECT_EQ(last_loop(gradient).regions[0]->results.size(), 1);
}

TEST(transforms, gradients_of_loops_without_steps) {
    std::string empty = recurrence;
    for (size_t at = empty.find("3"); at != std::string::npos; at = empty.find("3", at)) // `f32` has no other 3 in it
        empty.replace(at, 1, at > 0 && empty[at - 1] == 'f' ? "3" : "0"), at++;
    const Program gradient = gradient_of(with_loss(typed(empty)));
    const std::vector<Array> got = interpret(
        gradient, {array({2, 2}, {1, 2, 3, 4}), array({2}, {5, 6}), array({2}, {7, 8}), array({0, 2}, {})}, rules(), Mode::stored);
    EXPECT_EQ(got[0].data, (std::vector<double>{0, 0, 0, 0}));
    EXPECT_EQ(got[2].data, (std::vector<double>{14, 16}));
    EXPECT_EQ(got[3].shape, (std::vector<int64_t>{0, 2}));
}

/// A number of steps that a run gives: as in a loop of this length, and rows of later elements get zeros.
TEST(transforms, gradients_of_counted_and_of_symbolic_loops) {
    const std::string body = " with\n    body(w: f32[], h: f32[] inout, x: f32[] each, i: i32[] step) -> (h = next, y: f32[] = p) {\n"
                             "      p = mul(h, w)\n      f = convert_element_type(i) {dtype: f32}\n      s = mul(p, f)\n"
                             "      q = add(s, x)\n      next = sin(q)\n    }\n}\n";
    const auto gradients = [&](const std::string &text, std::vector<Array> inputs) {
        return interpret(gradient_of(with_loss(typed(text))), inputs, rules(), Mode::real);
    };
    const std::vector<double> xs{.1, .2, .3, .4, .5};
    for (const std::string reverse : {"", ", reverse: true"})
        for (const int64_t steps : {-1, 0, 2, 5, 7}) {
            const int64_t length = std::clamp<int64_t>(steps, 0, 5);
            const std::vector<double> first(xs.begin(), xs.begin() + length);
            const std::vector<Array> got =
                gradients("(n: i32[], w: f32[], h: f32[], xs: f32[t]) -> (h1: f32[], ys: f32[t]) {\n"
                          "  h1, ys = scan(n, w, h, xs) {length: t, count: true" +
                              reverse + "}" + body,
                          {array({}, {double(steps)}, Dtype::i32), array({}, {.7}), array({}, {.3}), array({5}, xs)});
            const std::string t = std::to_string(length);
            const std::vector<Array> want = gradients("(w: f32[], h: f32[], xs: f32[" + t + "]) -> (h1: f32[], ys: f32[" + t +
                                                          "]) {\n"
                                                          "  h1, ys = scan(w, h, xs) {length: " +
                                                          t + reverse + "}" + body,
                                                      {array({}, {.7}), array({}, {.3}), array({length}, first)});
            EXPECT_NEAR(got[0].data[0], want[0].data[0], 1e-12) << steps;
            EXPECT_NEAR(got[1].data[0], want[1].data[0], 1e-12) << steps;
            for (int64_t i = 0; i < 5; i++) EXPECT_NEAR(got[2].data[i], i < length ? want[2].data[i] : 0, 1e-12) << steps << " " << i;
        }
}

/// A branch that is not taken has no part in a gradient, even where its own would be infinite.
TEST(transforms, gradients_of_branches) {
    const std::string text = "(p: bool[], x: f32[2], w: f32[2]) -> (y: f32[2]) {\n  y = cond(p, x, w) with\n"
                             "    yes(x: f32[2], w: f32[2]) -> (a: f32[2]) {\n      a = log(x)\n    },\n"
                             "    no(x: f32[2], w: f32[2]) -> (a: f32[2]) {\n      s = sin(w)\n      a = mul(x, s)\n    }\n}\n";
    for (const double p : {0., 1.}) checked_gradient(text, {array({}, {p}, Dtype::boolean), array({2}, {1, 2}), array({2}, {3, 4})});
    const std::vector<Array> inputs{array({}, {0}, Dtype::boolean), array({2}, {0, -1}), array({2}, {0, 0})};
    EXPECT_EQ(interpret(gradient_of(with_loss(typed(text))), inputs, rules(), Mode::real)[0].data, (std::vector<double>{0, 0}));
}

/// 1 + 999 * 2^-9: in bf16, the sum would stay 1.
TEST(transforms, gradients_of_bf16_captures_are_summed_in_f32) {
    const Program program = typed("(w: bf16[], xs: bf16[1000]) -> (s: bf16[]) {\n  zero = constant() {value: 0, dtype: bf16} : bf16[]\n"
                                  "  s = scan(w, zero, xs) {length: 1000, reverse: true} with\n"
                                  "    body(w: bf16[], s: bf16[] inout, x: bf16[] each) -> (s = next) {\n      p = mul(w, x)\n"
                                  "      next = add(s, p)\n    }\n}\n");
    std::vector<double> xs(1000, 1. / 512);
    xs[0] = 1;
    const std::vector<Array> inputs{array({}, {0}, Dtype::bf16), array({1000}, xs, Dtype::bf16)};
    const Array got = interpret(gradient_of(program), inputs, rules(), Mode::stored)[0];
    EXPECT_EQ(got.dtype, Dtype::bf16);
    EXPECT_NEAR(got.data[0], 1 + 999. / 512, 1. / 64);
}

/// Steps of gradient descent as a loop, whose loss is a loop, from a state of the program.
TEST(transforms, gradients_in_regions_and_of_states) {
    const std::string text = "program loss(w: f32[], xs: f32[4]) -> (s: f32[]) {\n  s = scan(w, 0.0, xs) {length: 4} with\n"
                             "    body(w: f32[], s: f32[] inout, x: f32[] each) -> (s = next) {\n      p = mul(w, x)\n"
                             "      q = mul(p, w)\n      next = add(s, q)\n    }\n}\n"
                             "program p(w: f32[] inout, xs: f32[4]) -> (w = w1, g: f32[]) {\n  g = grad(w, xs) {program: loss, wrt: [w]}\n"
                             "  w1 = fori(w, xs) {lower: 0, upper: 3} with\n    body(w: f32[] inout, xs: f32[4]) -> (w = next) {\n"
                             "      g = grad(w, xs) {program: loss, wrt: [w]}\n      h = mul(g, 0.125)\n      next = sub(w, h)\n    }\n}\n";
    const Program base = to_base_operators(parse_program(text, "t.scl"), rules(), {});
    const auto got = interpret(base, {array({}, {2}), array({4}, {1, 2, -3, 2})}, rules(), Mode::stored);
    EXPECT_EQ(got[1].data[0], 2 * 2 * 2); // d (w^2 sum(xs)) / dw
    EXPECT_EQ(got[0].data[0], 2 * .5 * .5 * .5);
}

/// f64 values are scalars, so there is no stack of them.
TEST(transforms, gradients_of_loops_with_f64) {
    const auto scan = [](const std::string &carry, const std::string &start) {
        return "(x: f32[], xs: f32[3]) -> (y: f32[]) {\n" + start + "  z = scan(c, xs) {length: 3} with\n    body(c: " + carry +
               "[] inout, x: f32[] each) -> (c = next) {\n      d = convert_element_type(c) {dtype: f64}\n"
               "      e = convert_element_type(x) {dtype: f64}\n      p = mul(d, e)\n      q = mul(p, p)\n"
               "      next = convert_element_type(q) {dtype: " +
               carry + "}\n    }\n  y = convert_element_type(z) {dtype: f32}\n}\n";
    };
    checked_gradient(scan("f32", "  c = neg(x)\n"), {array({}, {2}), array({3}, {1, 2, 3})});
    EXPECT_EQ(error_of([&] { gradient_of(typed(scan("f64", "  c = convert_element_type(x) {dtype: f64}\n"))); }),
              "t.scl:3:3: scan.c: a carry that a gradient reads must not be f64, because the loop stacks it, got f64[]. Carry it in f32");
}

TEST(transforms, gradients_by_captured_constants) {
    const std::string text = "program loss(w: f32[]) -> (s: f32[]) {\n  s = sin(w)\n}\n"
                             "program p(c: f32[] constant, x: f32[]) -> (y: f32[]) {\n  y = fori(c, x) {lower: 0, upper: 3} with\n"
                             "    body(v: f32[], x: f32[] inout) -> (x = next) {\n      g = grad(v) {program: loss, wrt: [w]}\n"
                             "      next = add(x, g)\n    }\n}\n";
    EXPECT_EQ(error_of([&] { to_base_operators(parse_program(text, "t.scl"), rules(), {}); }),
              "t.scl:7:7: cannot compute the gradient with respect to body.v: it is constant. Declare it without 'constant' (in the DSL as "
              "Input or State)");
}

TEST(transforms, gradients_of_loops_without_a_bound) {
    const auto error = [](const std::string &text) { return error_of([&] { gradient_of(with_loss(typed(text))); }); };
    const std::string start = "t.scl:2:3: ",
                      requirement = ": a loop with a gradient must have a bound on its steps, because the gradient "
                                    "reads values of each step, got ",
                      way_out = ". Use fori with static bounds, or scan with a length. With {count: true, length: n}, a scan runs at most "
                                "n steps";
    const std::string loop = "  y = while(x) with\n    test(x: f32[]) -> (more: bool[]) {\n      more = lt(x, 5)\n    },\n"
                             "    body(x: f32[] inout) -> (x = next) {\n      next = add(x, 1)\n    }\n";
    EXPECT_EQ(error("(x: f32[]) -> (y: f32[]) {\n" + loop + "}\n"), start + "while" + requirement + "a condition" + way_out);
    EXPECT_EQ(error("(x: f32[]) -> (z: f32[]) {\n" + loop + "  s = stop_gradient(y)\n  z = mul(x, s)\n}\n"), "no error");
    const std::string body = " with\n    body(x: f32[] inout) -> (x = next) {\n      next = sin(x)\n    }\n}\n";
    EXPECT_EQ(error("(n: i32[], x: f32[]) -> (y: f32[]) {\n  y = fori(n, n, x)" + body),
              start + "fori" + requirement + "a number that an operand gives" + way_out);
    EXPECT_EQ(error("(n: i32[], x: f32[]) -> (y: f32[]) {\n  y = scan(n, x) {count: true}" + body),
              start + "scan" + requirement + "a number that an operand gives" + way_out);
    EXPECT_EQ(error("(x: f32[]) -> (y: f32[]) {\n  y = fori(x) {lower: 0, upper: 2, remat: 1}" + body),
              "t.scl:2:3: fori.remat: must be true or false, got 1");
}

} // namespace scalide
