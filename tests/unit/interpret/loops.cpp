#include "fixture.h"
#include <gtest/gtest.h>

// Loops and branches in the interpreter (ir/regions.h): the numbers of steps, the order, carries, stacks.
namespace scalide {

namespace {

/// A scan of `attributes` over xs: i32[5]: the carry is the sum of the elements, and the stack the sums.
std::vector<Array> sums(const std::string &attributes, int64_t length = 5) {
    const std::string t = std::to_string(length);
    std::vector<double> xs;
    for (int64_t i = 0; i < length; i++) xs.push_back(static_cast<double>(i + 1));
    return run("program p(c: i32[], n: i32[], xs: i32[" + t + "]) -> (s: i32[], sums: i32[" + t + "], steps: i32[" + t + "]) {\n" +
                   "  s, sums, steps = scan(" + (attributes.find("count") == std::string::npos ? "" : "n, ") + "c, xs) " + attributes +
                   " : i32[], i32[" + t + "], i32[" + t + "] with\n" +
                   "    body(c: i32[] inout, x: i32[] each, i: i32[] step) -> (c = next, y: i32[] = next, i: i32[]) {\n" +
                   "      next = add(c, x) : i32[]\n    }\n}\n",
               {i32_array({}, {10}), i32_array({}, {2}), i32_array({length}, xs)});
}

using Numbers = std::vector<double>;

} // namespace

TEST(interpret, loops_scan_forwards_and_backwards) {
    const std::vector<Array> forwards = sums("{length: 5}"), backwards = sums("{length: 5, reverse: true}");
    EXPECT_EQ(forwards[0].data, (Numbers{25}));
    EXPECT_EQ(forwards[1].data, (Numbers{11, 13, 16, 20, 25}));
    EXPECT_EQ(forwards[2].data, (Numbers{0, 1, 2, 3, 4}));
    EXPECT_EQ(backwards[0].data, (Numbers{25}));
    EXPECT_EQ(backwards[1].data, (Numbers{25, 24, 22, 19, 15})) << "the last element comes first";
    EXPECT_EQ(backwards[2].data, (Numbers{0, 1, 2, 3, 4})) << "the number of the element";
}

TEST(interpret, loops_of_zero_steps_and_of_one) {
    const std::vector<Array> none = sums("{length: 0}", 0), one = sums("{length: 1}", 1);
    EXPECT_EQ(none[0].data, (Numbers{10}));
    EXPECT_EQ(none[1].shape, (std::vector<int64_t>{0}));
    EXPECT_TRUE(none[1].data.empty());
    EXPECT_EQ(one[0].data, (Numbers{11}));
    EXPECT_EQ(one[1].data, (Numbers{11}));
}

TEST(interpret, loops_count_their_steps) {
    const std::vector<Array> counted = sums("{length: 5, count: true}");
    EXPECT_EQ(counted[0].data, (Numbers{13}));
    EXPECT_EQ(counted[1].data, (Numbers{11, 13, 0, 0, 0}));
}

/// The carries of JAX's `scan(lambda c, _: ((c[1], c[0] + c[1]), None), (1, 1), None, length=5)`.
TEST(interpret, loops_rotate_their_carries) {
    const auto results = run("program p(a: f32[], b: f32[]) -> (x: f32[], y: f32[]) {\n"
                             "  x, y = fori(a, b) {lower: 0, upper: 5} : f32[], f32[] with\n"
                             "    body(a: f32[] inout, b: f32[] inout) -> (a = b, b = sum) {\n"
                             "      sum = add(a, b) : f32[]\n    }\n}\n",
                             {f32_array({}, {1}), f32_array({}, {1})});
    EXPECT_EQ(results[0].data, (Numbers{8}));
    EXPECT_EQ(results[1].data, (Numbers{13}));
}

TEST(interpret, loops_take_bounds_from_operands) {
    const auto steps = [](double lower, double upper) {
        return run("program p(l: i32[], u: i32[], x: i32[]) -> (y: i32[]) {\n"
                   "  y = fori(l, u, x) : i32[] with\n"
                   "    body(i: i32[] step, x: i32[] inout) -> (x = next) {\n"
                   "      next = add(x, i) : i32[]\n    }\n}\n",
                   {i32_array({}, {lower}), i32_array({}, {upper}), i32_array({}, {100})})
            .at(0)
            .data[0];
    };
    EXPECT_EQ(steps(-2, 3), 100 - 2 - 1 + 0 + 1 + 2);
    EXPECT_EQ(steps(3, 3), 100);
    EXPECT_EQ(steps(5, 3), 100);
}

TEST(interpret, loops_run_while_a_test_holds) {
    const std::string text = "program roots(a: f32[2], limit: f32[]) -> (x: f32[2], steps: i32[]) {\n"
                             "  zero = constant() {value: 0, dtype: i32} : i32[]\n"
                             "  x, steps = while(a, limit, a, zero) {max_steps: 20} : f32[2], i32[] with\n"
                             "    test(a: f32[2], limit: f32[], x: f32[2], k: i32[]) -> (more: bool[]) {\n"
                             "      square = mul(x, x) : f32[2]\n"
                             "      far = sub(square, a) : f32[2]\n"
                             "      worst = reduce_max(far) {axes: [0]} : f32[]\n"
                             "      more = gt(worst, limit) : bool[]\n"
                             "    },\n"
                             "    body(a: f32[2], limit: f32[], x: f32[2] inout, k: i32[] inout) -> (x = better, k = next) {\n"
                             "      other = div(a, x) : f32[2]\n"
                             "      both = add(x, other) : f32[2]\n"
                             "      better = mul(both, 0.5) : f32[2]\n"
                             "      next = add(k, 1) : i32[]\n    }\n}\n";
    const auto roots = run(text, {f32_array({2}, {4, 9}), f32_array({}, {1e-4})});
    EXPECT_NEAR(roots[0].data[0], 2, 1e-4);
    EXPECT_NEAR(roots[0].data[1], 3, 1e-4);
    EXPECT_EQ(roots[1].data, (Numbers{5}));
    EXPECT_EQ(run(text, {f32_array({2}, {4, 9}), f32_array({}, {100})})[1].data, (Numbers{0})) << "the test comes first";
    EXPECT_THROW(run(text, {f32_array({2}, {4, 9}), f32_array({}, {-1})}), UserError) << "more than 20 steps";
}

TEST(interpret, branches) {
    const auto chosen = [](double index) {
        return run("program p(i: i32[], x: f32[]) -> (y: f32[]) {\n  y = switch(i, x) : f32[] with\n"
                   "    zero(x: f32[]) -> (y: f32[] = x) {\n    },\n"
                   "    one(x: f32[]) -> (y: f32[]) {\n      y = neg(x) : f32[]\n    },\n"
                   "    two(x: f32[]) -> (y: f32[]) {\n      y = exp(x) : f32[]\n    }\n}\n",
                   {i32_array({}, {index}), f32_array({}, {0})})
            .at(0)
            .data[0];
    };
    EXPECT_EQ(chosen(0), 0);
    EXPECT_EQ(chosen(2), 1);
    EXPECT_EQ(chosen(7), 1) << "clamped";
    EXPECT_EQ(chosen(-7), 0) << "clamped";
    const auto condition = [](double p) {
        return run("program p(p: bool[], x: f32[]) -> (y: f32[]) {\n  y = cond(p, x) : f32[] with\n"
                   "    yes(x: f32[]) -> (y: f32[] = x) {\n    },\n"
                   "    no(x: f32[]) -> (y: f32[]) {\n      y = neg(x) : f32[]\n    }\n}\n",
                   {{Dtype::boolean, {}, {p}}, f32_array({}, {3})})
            .at(0)
            .data[0];
    };
    EXPECT_EQ(condition(1), 3);
    EXPECT_EQ(condition(0), -3);
}

/// A loop in a branch in a loop, of symbolic length, whose body reads an array of the program.
TEST(interpret, loops_nest) {
    const auto results = run("program p(w: f32[n], xs: f32[t, n]) -> (s: f32[n]) {\n"
                             "  s = scan(w, w, xs) {length: t} : f32[n] with\n"
                             "    outer(w: f32[n], s: f32[n] inout, x: f32[n] each, i: i32[] step) -> (s = next) {\n"
                             "      is_first = eq(i, 0) : bool[]\n"
                             "      next = cond(is_first, w, s, x) : f32[n] with\n"
                             "        yes(w: f32[n], s: f32[n], x: f32[n]) -> (r: f32[n] = s) {\n        },\n"
                             "        no(w: f32[n], s: f32[n], x: f32[n]) -> (r: f32[n]) {\n"
                             "          r = fori(x, s) {lower: 0, upper: 3} : f32[n] with\n"
                             "            inner(x: f32[n], s: f32[n] inout) -> (s = more) {\n"
                             "              more = add(s, x) : f32[n]\n            }\n        }\n    }\n}\n",
                             {f32_array({2}, {1, 2}), f32_array({3, 2}, {50, 60, 1, 2, 3, 4})});
    EXPECT_EQ(results[0].data, (Numbers{1 + 3 + 9, 2 + 6 + 12}));
}

} // namespace scalide
