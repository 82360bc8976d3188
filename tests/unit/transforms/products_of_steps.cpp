#include "transforms/loops/products_of_steps.h"
#include "interpret/interpret.h"
#include "ir/regions.h"
#include "ir/text.h"
#include "support.h"
#include "support/programs/zeros.h"
#include "transforms/analysis/passes.h"
#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>

// Products of all steps of a loop at once: which products leave a loop, and that the results are the same numbers.

namespace scalide {

namespace {

Program parsed(const std::string &text) { return parse_program(text, "t.scl"); }

/// A scan of 5 steps over rows of 4 x 8 with weights, a carry h, and two sums of gradients: g of the weight and b of the bias.
Program program_of(const std::string &body, const std::string &options = "length: 5") {
    return parsed("program p(w: f32[8, 9], u: f32[9, 9], v: f32[9], h0: f32[4, 9], g0: f32[8, 9], b0: f32[9], xs: f32[5, 4, 8])\n"
                  "  -> (h: f32[4, 9], g: f32[8, 9], b: f32[9], ys: f32[5, 4, 9]) {\n"
                  "  h, g, b, ys = scan(w, u, v, h0, g0, b0, xs) {" +
                  options +
                  "} : f32[4, 9], f32[8, 9], f32[9], f32[5, 4, 9] with\n"
                  "    body(w: f32[8, 9], u: f32[9, 9], v: f32[9], h: f32[4, 9] inout, g: f32[8, 9] inout, b: f32[9] inout,\n"
                  "         x: f32[4, 8] each) -> (h = h1, g = g1, b = b1, y: f32[4, 9]) {\n" +
                  body + "    }\n}\n");
}

Array varied(const Type &type) {
    Array array = zeros(type, {});
    const auto count = static_cast<double>(array.data.size());
    for (size_t i = 0; i < array.data.size(); i++) array.data[i] = std::sin(0.7 * static_cast<double>(i) + count) / 2;
    return array;
}

std::vector<Array> results_of(const Program &program) {
    std::vector<Array> inputs;
    for (const Argument &argument : program.arguments) inputs.push_back(varied(program.type(argument.value)));
    return interpret(program, inputs, rules(), Mode::real);
}

int products_in(const Program &program) { return static_cast<int>(std::ranges::count(program.nodes, "dot_general", &Node::op)); }

/// The dot_general nodes of the main program and of the body of its last loop.
struct Counts {
    int outside = 0, inside = 0;
    bool operator==(const Counts &) const = default;
};

Counts counts_of(const Program &program) {
    Counts counts{products_in(program)};
    for (const Node &node : program.nodes)
        if (!node.regions.empty()) counts.inside = products_in(*node.regions.back());
    return counts;
}

/// Moves the products of a program, and checks that the results are the same numbers.
Program batched(const Program &program) {
    const Program simple = simplify(infer_types(program, rules()), rules());
    const Program made = simplify(batch_products(simple, rules()), rules());
    const std::vector<Array> before = results_of(simple), after = results_of(made);
    EXPECT_EQ(before.size(), after.size());
    for (size_t r = 0; r < before.size(); r++)
        for (size_t i = 0; i < before[r].data.size(); i++)
            EXPECT_NEAR(after[r].data[i], before[r].data[i], 1e-12 * (1 + std::abs(before[r].data[i]))) << r << " " << i;
    return made;
}

Counts after(const std::string &body, const std::string &options = "length: 5") { return counts_of(batched(program_of(body, options))); }

/// Keeps the sums of gradients, and gives h as y.
const std::string rest = "g1 = neg(g)\n b1 = neg(b)\n y = sin(h1)\n";
const std::string times_w = "{contract: [[1], [0]]} : f32[4, 9]\n";

} // namespace

TEST(transforms, products_of_elements_run_before_the_loop) {
    const std::string recurrence = "q = dot_general(h, u) " + times_w + "s = add(z, q)\n h1 = tanh(s)\n" + rest;
    EXPECT_EQ(after("z = dot_general(x, w) " + times_w + recurrence), (Counts{1, 1}));
    EXPECT_EQ(after("a = tanh(x)\n z = dot_general(a, w) " + times_w + recurrence), (Counts{1, 1}));
    // What is before a product may depend on the number of the step, on captures and on other products.
    EXPECT_EQ(after("z1 = dot_general(x, w) " + times_w +
                    "c = broadcast_in_dim(v) {dims: [1], shape: [4, 9]}\n z2 = mul(z1, c)\n"
                    "m = reduce_max(z2) {axes: [1]}\n mb = broadcast_in_dim(m) {dims: [0], shape: [4, 9]}\n z3 = sub(z2, mb)\n"
                    "z = dot_general(z3, u) " +
                    times_w + recurrence),
              (Counts{2, 1}));
}

TEST(transforms, products_of_elements_move_through_each_operator) {
    const std::string end = "z = dot_general(a, w) " + times_w + "s = add(h, z)\n h1 = tanh(s)\n" + rest;
    for (const std::string before :
         {"t = transpose(x) {permutation: [1, 0]}\n a = transpose(t) {permutation: [1, 0]}\n", "a = rev(x) {dimensions: [1]}\n",
          "r = reshape(x) {shape: [2, 16]}\n n = neg(r)\n a = reshape(n) {shape: [4, 8]}\n",
          "l = slice(x) {start: [0, 0], limit: [4, 4], strides: []}\n r = slice(x) {start: [0, 1], limit: [4, 8], strides: [1, 2]}\n"
          "a = concatenate(r, l) {dimension: 1}\n",
          "big = gt(x, 0.1)\n sq = mul(x, x)\n a = select_n(big, x, sq)\n", "m = reduce_sum(x) {axes: [0, 1]}\n a = mul(x, m)\n",
          "f = slice(v) {start: [1], limit: [9]}\n c = broadcast_in_dim(f) {dims: [1], shape: [4, 8]}\n e = exp(c)\n a = div(x, e)\n"})
        EXPECT_EQ(after(before + end), (Counts{1, 0})) << before;
}

TEST(transforms, a_weight_may_be_the_left_operand) {
    const std::string end = "s = add(h, z)\n h1 = tanh(s)\n" + rest;
    EXPECT_EQ(after("t = dot_general(w, x) {contract: [[0], [1]]} : f32[9, 4]\n z = transpose(t) {permutation: [1, 0]}\n" + end),
              (Counts{1, 0}));
    EXPECT_EQ(after("c = reduce_sum(x) {axes: [0]}\n t = dot_general(w, c) {contract: [[0], [0]]} : f32[9]\n"
                    "z = broadcast_in_dim(t) {dims: [1], shape: [4, 9]}\n" +
                    end),
              (Counts{1, 0}));
    EXPECT_EQ(after("t = dot_general(w, x) {contract: [[0], [1]]} : f32[9, 4]\n e = exp(t)\n z = reshape(e) {shape: [4, 9]}\n" + end),
              (Counts{1, 0}));
}

TEST(transforms, sums_of_products_run_after_the_loop) {
    const std::string next = "h1 = tanh(h)\n y = sin(h1)\n";
    EXPECT_EQ(after(next + "p = dot_general(x, h1) {contract: [[0], [0]]} : f32[8, 9]\n g1 = add(g, p)\n b1 = neg(b)\n"), (Counts{1, 0}));
    EXPECT_EQ(
        after(next + "p = dot_general(h, x) {contract: [[0], [0]]} : f32[9, 8]\n t = transpose(p) {permutation: [1, 0]}\n g1 = add(t, g)\n"
                     "b1 = neg(b)\n",
              "length: 5, reverse: true"),
        (Counts{1, 0}));
    // A sum of rows is a sum over the stack that the product needs.
    const Program made = batched(program_of(next + "p = dot_general(x, h1) {contract: [[0], [0]]} : f32[8, 9]\n g1 = add(g, p)\n"
                                                   "r = reduce_sum(h1) {axes: [0]}\n b1 = add(b, r)\n"));
    EXPECT_EQ(counts_of(made), (Counts{1, 0}));
    const auto loop = std::ranges::find(made.nodes, "scan", &Node::op);
    ASSERT_NE(loop, made.nodes.end());
    EXPECT_EQ(std::ranges::count((*loop->regions[0]).nodes, "reduce_sum", &Node::op), 0);
}

TEST(transforms, sums_stay_in_a_loop_that_reads_them) {
    const std::string next = "h1 = tanh(h)\n b1 = neg(b)\n p = dot_general(x, h1) {contract: [[0], [0]]} : f32[8, 9]\n";
    EXPECT_EQ(after(next + "g1 = add(g, p)\n q = dot_general(x, g) " + times_w + "y = add(q, h)\n"), (Counts{0, 2}));
    EXPECT_EQ(after(next + "g1 = add(g, p)\n q = dot_general(x, g1) " + times_w + "y = add(q, h)\n"), (Counts{0, 2}));
    EXPECT_EQ(after(next + "y = sin(h)\n d = mul(g, 0.5)\n g1 = add(d, p)\n"), (Counts{0, 1}));
    EXPECT_EQ(after(next + "y = sin(h)\n n = add(g, p)\n g1 = mul(n, 0.5)\n"), (Counts{0, 1}));
    EXPECT_EQ(after("h1 = tanh(h)\n b1 = neg(b)\n y = sin(h)\n d = add(g, g)\n g1 = add(d, w)\n"), (Counts{0, 0}));
}

TEST(transforms, products_that_no_step_reads_run_after_the_loop) {
    const std::string next = "h1 = tanh(h)\n g1 = neg(g)\n b1 = neg(b)\n";
    EXPECT_EQ(after(next + "y = dot_general(h1, u) " + times_w), (Counts{1, 0}));
    EXPECT_EQ(after(next + "q = dot_general(h, u) " + times_w +
                    "c = broadcast_in_dim(v) {dims: [1], shape: [4, 9]}\n s = add(q, c)\n y = logistic(s)\n"),
              (Counts{1, 0}));
    EXPECT_EQ(after(next + "q = dot_general(h, u) " + times_w + "s = tanh(q)\n y = dot_general(s, u) " + times_w), (Counts{2, 0}));
    EXPECT_EQ(after("q = dot_general(h, u) " + times_w + "h1 = tanh(q)\n g1 = neg(g)\n b1 = neg(b)\n y = sin(q)\n"), (Counts{0, 1}));
}

TEST(transforms, products_of_concatenations_are_split) {
    const std::string end = "h1 = tanh(z)\n" + rest;
    // h has 9 columns and x 8: the weight has 17 rows.
    const std::string weight = "wu = concatenate(w, u) {dimension: 0}\n";
    EXPECT_EQ(after("xh = concatenate(x, h) {dimension: 1}\n" + weight + "z = dot_general(xh, wu) " + times_w + end), (Counts{1, 1}));
    EXPECT_EQ(after("xh = concatenate(h, x, x) {dimension: 1}\n" + weight +
                    "k = concatenate(u, w, w) {dimension: 0}\n"
                    "z = dot_general(xh, k) " +
                    times_w + end),
              (Counts{1, 1}));
    EXPECT_EQ(after("xh = concatenate(h, h) {dimension: 1}\nk = concatenate(u, u) {dimension: 0}\nz = dot_general(xh, k) " + times_w + end),
              (Counts{0, 1}));
    // The gradient: one part of the product is a stack, the other one a carry.
    EXPECT_EQ(after("wu = concatenate(u, u) {dimension: 0}\nd = dot_general(h, wu) {contract: [[1], [1]]} : f32[4, 18]\n"
                    "l = slice(d) {start: [0, 0], limit: [4, 9]}\ny = slice(d) {start: [0, 9], limit: [4, 18]}\nh1 = tanh(l)\n"
                    "g1 = neg(g)\n b1 = neg(b)\n"),
              (Counts{1, 1}));
    EXPECT_EQ(after("wu = concatenate(u, u) {dimension: 0}\nd = dot_general(wu, h) {contract: [[1], [1]]} : f32[18, 4]\n"
                    "l = slice(d) {start: [0, 0], limit: [9, 4]}\nr = slice(d) {start: [9, 0], limit: [18, 4]}\n"
                    "t = transpose(l) {permutation: [1, 0]}\n y = transpose(r) {permutation: [1, 0]}\nh1 = tanh(t)\n"
                    "g1 = neg(g)\n b1 = neg(b)\n"),
              (Counts{0, 1}));
    EXPECT_EQ(after("wu = concatenate(u, u) {dimension: 0}\nd = dot_general(h, wu) {contract: [[1], [1]]} : f32[4, 18]\n"
                    "l = slice(d) {start: [0, 0], limit: [4, 9]}\ny = slice(d) {start: [0, 3], limit: [4, 12]}\nh1 = tanh(l)\n"
                    "g1 = neg(g)\n b1 = neg(b)\n"),
              (Counts{0, 1})); // they overlap
}

TEST(transforms, products_stay_where_moving_them_does_not_pay) {
    const std::string end = "s = add(h, z)\n h1 = tanh(s)\n" + rest;
    const std::string four =
        "a = slice(x) {start: [0, 0], limit: [4, 4]}\n c = slice(w) {start: [0, 0], limit: [4, 9]}\n z = dot_general(a, c) " + times_w;
    EXPECT_EQ(after(four + end), (Counts{0, 1})); // four terms
    // The number of steps is known during the run alone.
    EXPECT_EQ(counts_of(batched(parsed("program p(n: i32[], w: f32[8, 8], h0: f32[4, 8], xs: f32[5, 4, 8]) -> (h: f32[4, 8]) {\n"
                                       "  h = scan(n, w, h0, xs) {length: 5, count: true} : f32[4, 8] with\n"
                                       "    body(w: f32[8, 8], h: f32[4, 8] inout, x: f32[4, 8] each) -> (h = h1) {\n"
                                       "      z = dot_general(x, w) {contract: [[1], [0]]}\n      h1 = add(h, z)\n    }\n}\n"))),
              (Counts{0, 1}));
    // All steps together would take 10 GB.
    const Program large =
        infer_types(parsed("program p(w: f32[64, 4096], h0: f32[4096], xs: f32[600000, 64]) -> (h: f32[4096]) {\n"
                           "  h = scan(w, h0, xs) {length: 600000} : f32[4096] with\n"
                           "    body(w: f32[64, 4096], h: f32[4096] inout, x: f32[64] each) -> (h = h1) {\n"
                           "      z = dot_general(x, w) {contract: [[0], [0]]}\n      s = mul(h, 0.5)\n      h1 = add(s, z)\n    }\n}\n"),
                    rules());
    EXPECT_EQ(counts_of(batch_products(large, rules())), (Counts{0, 1}));
}

TEST(transforms, products_leave_nested_loops) {
    const Program made = batched(parsed(
        "program p(w: f32[8, 8], h0: f32[4, 8], xs: f32[3, 5, 4, 8]) -> (h: f32[4, 8]) {\n"
        "  h = scan(w, h0, xs) {length: 3} : f32[4, 8] with\n"
        "    outer(w: f32[8, 8], h: f32[4, 8] inout, row: f32[5, 4, 8] each) -> (h = h1) {\n"
        "      h1 = scan(w, h, row) {length: 5} : f32[4, 8] with\n"
        "        inner(w: f32[8, 8], h: f32[4, 8] inout, x: f32[4, 8] each) -> (h = h2) {\n"
        "          z = dot_general(x, w) {contract: [[1], [0]]}\n          s = add(h, z)\n          h2 = tanh(s)\n        }\n    }\n}\n"));
    EXPECT_EQ(counts_of(made), (Counts{1, 0}));
}

} // namespace scalide
