#include "interpret/interpret.h"
#include "ir/text.h"
#include "support.h"
#include "transforms/analysis/passes.h"
#include <cmath>
#include <gtest/gtest.h>

// Reductions by a user's sub-program.

namespace scalide {

namespace {

constexpr const char *hypotenuse = "program hypotenuse(a: f32[], b: f32[]) -> (c: f32[]) {\n"
                                   "  aa = mul(a, a)\n  bb = mul(b, b)\n  sum = add(aa, bb)\n  c = sqrt(sum)\n}\n";
/// The larger value and its place; of equal ones the first.
constexpr const char *better = "program better(v: f32[], i: i32[], w: f32[], j: i32[]) -> (x: f32[], k: i32[]) {\n"
                               "  first = ge(v, w)\n  x = select_n(first, w, v)\n  k = select_n(first, j, i)\n}\n";
/// Not commutative: x -> a x + b composed with x -> c x + d.
constexpr const char *compose = "program compose(a: f32[], b: f32[], c: f32[], d: f32[]) -> (e: f32[], f: f32[]) {\n"
                                "  e = mul(a, c)\n  cb = mul(c, b)\n  f = add(cb, d)\n}\n";

Program inlined(const std::string &text) { return inline_calls(infer_types(parse_program(text, "t.scl"), rules()), rules()); }

std::vector<Array> run(const std::string &text, const std::vector<Array> &inputs) {
    return interpret(inlined(text), inputs, rules(), Mode::real);
}

TEST(transforms, reduce_by_program_over_axes) {
    const Array x{Dtype::f32, {2, 3, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}}, init{Dtype::f32, {}, {0}};
    const std::string text = hypotenuse + std::string("program p(x: f32[2, n, 2], z: f32[]) -> (y: f32[n]) {\n"
                                                      "  y = reduce(x, z) {program: hypotenuse, axes: [0, -1]}\n}\n");
    const std::vector<Array> got = run(text, {x, init});
    const double squares[] = {1 + 4 + 49 + 64, 9 + 16 + 81 + 100, 25 + 36 + 121 + 144};
    for (size_t i = 0; i < 3; i++) EXPECT_NEAR(got[0].data[i], std::sqrt(squares[i]), 1e-12);
}

TEST(transforms, reduce_by_program_of_several_arrays) {
    const std::string text = better + std::string("program p(x: f32[2, 5]) -> (y: f32[2], k: i32[2]) {\n"
                                                  "  i = iota() {shape: [2, 5], dimension: 1}\n  low = constant() {value: -inf}\n"
                                                  "  none = constant() {value: -1, dtype: i32}\n"
                                                  "  y, k = reduce(x, i, low, none) {program: better, axes: [1]}\n}\n");
    const std::vector<Array> got = run(text, {{Dtype::f32, {2, 5}, {1, 4, 2, 4, 3, 0, -1, -2, -3, 7}}});
    EXPECT_EQ(got[0].data, (std::vector<double>{4, 7}));
    EXPECT_EQ(got[1].data, (std::vector<double>{1, 4}));
}

TEST(transforms, reduce_by_program_keeps_the_order) {
    const std::string text = compose + std::string("program p(a: f32[5], b: f32[5]) -> (y: f32[], k: f32[]) {\n"
                                                   "  one = constant() {value: 1.0}\n  zero = constant() {value: 0.0}\n"
                                                   "  y, k = reduce(a, b, one, zero) {program: compose}\n}\n");
    const std::vector<double> a{2, 3, -1, 0.5, 4}, b{1, -2, 3, 5, -1};
    double slope = 1, offset = 0;
    for (size_t i = 0; i < a.size(); i++) {
        slope *= a[i];
        offset = a[i] * offset + b[i];
    }
    const std::vector<Array> got = run(text, {{Dtype::f32, {5}, a}, {Dtype::f32, {5}, b}});
    EXPECT_EQ(got[0].data[0], slope);
    EXPECT_EQ(got[1].data[0], offset);
}

TEST(transforms, reduce_of_nothing_is_the_init) {
    const std::string text = hypotenuse + std::string("program p(x: f32[0, 2], z: f32[]) -> (y: f32[2]) {\n"
                                                      "  y = reduce(x, z) {program: hypotenuse, axes: [0]}\n}\n");
    EXPECT_EQ(run(text, {{Dtype::f32, {0, 2}, {}}, {Dtype::f32, {}, {3}}})[0].data, (std::vector<double>{3, 3}));
}

TEST(transforms, reduce_window_by_program) {
    const std::string text = hypotenuse + std::string("program p(x: f32[n, 4], z: f32[]) -> (y: f32[n, 3]) {\n"
                                                      "  y = reduce_window(x, z) {program: hypotenuse, window: [1, 2], strides: [1, 2],"
                                                      " low: [0, 1], high: [0, 1]}\n}\n");
    const std::vector<Array> got = run(text, {{Dtype::f32, {2, 4}, {1, 3, 4, 2, 5, 6, 8, 7}}, {Dtype::f32, {}, {0}}});
    const std::vector<double> expected{1, 5, 2, 5, 10, 7};
    for (size_t i = 0; i < expected.size(); i++) EXPECT_NEAR(got[0].data[i], expected[i], 1e-12);
}

TEST(transforms, gradient_of_a_reduction_by_program) {
    const std::string text =
        hypotenuse + std::string("program norm(x: f32[3]) -> (s: f32[]) {\n  z = constant() {value: 0.0}\n"
                                 "  s = reduce(x, z) {program: hypotenuse, axes: [0]}\n}\n"
                                 "program p(x: f32[3]) -> (g: f32[3]) {\n  g = grad(x) {program: norm, wrt: [x]}\n}\n");
    const std::vector<Array> got = run(text, {{Dtype::f32, {3}, {2, 3, 6}}});
    for (size_t i = 0; i < 3; i++) EXPECT_NEAR(got[0].data[i], std::vector<double>({2 / 7.0, 3 / 7.0, 6 / 7.0})[i], 1e-12);
}

std::string reduce_error(const std::string &arguments, const std::string &node) {
    return error_of([&] {
        inlined(hypotenuse + std::string("program total(a: f32[], b: f32[]) -> (c: f32[]) {\n  c = reduce_sum(a) {axes: []}\n}\n") +
                "program p(" + arguments + ") -> (y: f32[]) {\n  " + node + "\n}\n");
    });
}

TEST(transforms, reduce_by_program_errors) {
    EXPECT_EQ(reduce_error("x: f32[3]", "y = reduce(x) {program: hypotenuse}"),
              "t.scl:11:3: reduce.operands: must be arrays, then one initial value for each array, got 1 operands");
    EXPECT_EQ(reduce_error("x: f32[3], z: i32[]", "y = reduce(x, z) {program: hypotenuse}"),
              "t.scl:11:3: reduce.operands: initial values must have the type f32[], got i32[]");
    EXPECT_EQ(reduce_error("x: i32[3], z: i32[]", "y = reduce(x, z) {program: hypotenuse}"),
              "t.scl:11:3: reduce.program: must take and return values of type i32[], got f32[]");
    EXPECT_EQ(reduce_error("x: f32[3], z: f32[]", "y = reduce(x, z) {program: total}"),
              "t.scl:11:3: reduce.program: must consist of elementwise operators, got reduce_sum in total");
    EXPECT_EQ(reduce_error("x: f32[n], z: f32[]", "y = reduce(x, z) {program: hypotenuse}"),
              "t.scl:11:3: reduce.axes: the reduced extents must be numbers, got n");
    EXPECT_EQ(reduce_error("x: f32[3], z: f32[]", "y = reduce(x, z) {program: hypotenuse, axes: [1]}"),
              "t.scl:11:3: reduce.axes: axes must be different and less than the rank 1, got [1]");
    EXPECT_EQ(reduce_error("x: f32[3], z: f32[]", "y = reduce_window(x, z) {program: hypotenuse}"),
              "t.scl:11:3: reduce_window.window: must have one entry for each axis, got 0");
}

} // namespace

} // namespace scalide
