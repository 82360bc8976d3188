#include "fixture.h"
#include <cmath>
#include <gtest/gtest.h>
#include <limits>

namespace scalide {

namespace {

using Numbers = std::vector<double>;
constexpr double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();

/// The result of one operator on `x`, by attributes and result type.
Numbers move(const std::string &node, const std::string &result, const Array &x) {
    const Type type{x.dtype, {x.shape.begin(), x.shape.end()}};
    return run_one("program p(x: " + to_string(type) + ") -> (y: " + result + ") {\n  y = " + node + " : " + result + "\n}\n", {x});
}

const Array matrix = f32_array({2, 3}, {1, 2, 3, 4, 5, 6});

} // namespace

TEST(interpret, elementwise_is_rounded_in_mode_stored_only) {
    const std::string text = "program p(x: f32[2], y: f32[2]) -> (z: f32[2]) {\n  z = div(x, y) : f32[2]\n}\n";
    const std::vector<Array> inputs{f32_array({2}, {1, 2}), f32_array({2}, {3, 4})};
    EXPECT_EQ(run_one(text, inputs, Mode::real), (Numbers{1.0 / 3, 0.5}));
    EXPECT_EQ(run_one(text, inputs, Mode::stored), (Numbers{float(1.0 / 3), 0.5}));
}

TEST(interpret, select_takes_a_case_of_rank_0) {
    EXPECT_EQ(run_one("program p(w: bool[], x: f32[2], y: f32[2]) -> (z: f32[2]) {\n  z = select_n(w, x, y) : f32[2]\n}\n",
                      {{Dtype::boolean, {}, {1}}, f32_array({2}, {1, 2}), f32_array({2}, {3, 4})}),
              (Numbers{3, 4}));
}

TEST(interpret, integers_wrap_around) {
    const std::string head = "program p(x: i32[3], y: i32[3]) -> (z: i32[3]) {\n  z = ", tail = " : i32[3]\n}\n";
    const std::vector<Array> inputs{i32_array({3}, {2147483647, -2147483648, 123456789}), i32_array({3}, {1, -1, 987654321})};
    EXPECT_EQ(run_one(head + "add(x, y)" + tail, inputs), (Numbers{-2147483648, 2147483647, 1111111110}));
    EXPECT_EQ(run_one(head + "mul(x, y)" + tail, inputs), (Numbers{2147483647, -2147483648, -67153019}));
    EXPECT_EQ(run_one(head + "integer_pow(x) {y: 3}" + tail, inputs), (Numbers{2147483647, 0, 75731757}));
    EXPECT_EQ(run_one(head + "div(x, y)" + tail, inputs), (Numbers{2147483647, -2147483648, 0}));
}

TEST(interpret, converts) {
    const std::string to_i32 = "program p(x: f32[5]) -> (y: i32[5]) {\n  y = convert_element_type(x) {dtype: i32} : i32[5]\n}\n";
    EXPECT_EQ(run_one(to_i32, {f32_array({5}, {-1.75, 2.5, 1e20, -infinity, nan})}), (Numbers{-1, 2, 2147483647, -2147483648, 0}));
    const std::string to_f8 =
        "program p(x: f32[3]) -> (y: f8_e4m3fn[3]) {\n  y = convert_element_type(x) {dtype: f8_e4m3fn} : f8_e4m3fn[3]\n}\n";
    const Array x = f32_array({3}, {1.03, 17, 1000});
    EXPECT_EQ(run_one(to_f8, {x}, Mode::stored), (Numbers{1, 16, 448}));
    EXPECT_EQ(run_one(to_f8, {x}, Mode::real), x.data);
    const std::string infinities =
        "program p(x: f32[2]) -> (y: f16[2]) {\n  y = convert_element_type(x) {dtype: f16, overflow: format} : f16[2]\n}\n";
    EXPECT_EQ(run_one(infinities, {f32_array({2}, {1e6, -infinity})}), (Numbers{infinity, -infinity}));
    const std::string to_bool = "program p(x: f32[3]) -> (y: bool[3]) {\n  y = convert_element_type(x) {dtype: bool} : bool[3]\n}\n";
    EXPECT_EQ(run_one(to_bool, {f32_array({3}, {0, 0.25, -2})}), (Numbers{0, 1, 1}));
}

TEST(interpret, reduce_precision_is_that_of_xla) {
    EXPECT_EQ(move("reduce_precision(x) {exponent_bits: 4, mantissa_bits: 3}", "f32[4]", f32_array({4}, {17, 19, 300, 0.001})),
              (Numbers{16, 20, infinity, 0}));
}

TEST(interpret, movement) {
    EXPECT_EQ(move("transpose(x) {permutation: [1, 0]}", "f32[3, 2]", matrix), (Numbers{1, 4, 2, 5, 3, 6}));
    EXPECT_EQ(move("rev(x) {dimensions: [1]}", "f32[2, 3]", matrix), (Numbers{3, 2, 1, 6, 5, 4}));
    EXPECT_EQ(move("reshape(x) {shape: [6]}", "f32[6]", matrix), matrix.data);
    EXPECT_EQ(move("slice(x) {start: [0, 1], limit: [2, 3]}", "f32[2, 2]", matrix), (Numbers{2, 3, 5, 6}));
    EXPECT_EQ(move("slice(x) {start: [0, 0], limit: [2, 3], strides: [1, 2]}", "f32[2, 2]", matrix), (Numbers{1, 3, 4, 6}));
    EXPECT_EQ(move("broadcast_in_dim(x) {shape: [2, 2, 3], dims: [1, 2]}", "f32[2, 2, 3]", matrix),
              (Numbers{1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6}));
    EXPECT_EQ(move("broadcast_in_dim(x) {shape: [2, 2], dims: [0, 1]}", "f32[2, 2]", f32_array({2, 1}, {7, 8})), (Numbers{7, 7, 8, 8}));
    EXPECT_EQ(move("concatenate(x, x) {dimension: 1}", "f32[2, 6]", matrix), (Numbers{1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6}));
    EXPECT_EQ(move("concatenate(x, x) {dimension: 0}", "f32[4, 3]", matrix), (Numbers{1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6}));
}

TEST(interpret, pads) {
    const Array x = f32_array({4}, {1, 2, 3, 4});
    EXPECT_EQ(move("pad(x, 9.0) {low: [1], high: [2]}", "f32[7]", x), (Numbers{9, 1, 2, 3, 4, 9, 9}));
    EXPECT_EQ(move("pad(x, 9.0) {low: [-1], high: [-2]}", "f32[1]", x), (Numbers{2}));
    EXPECT_EQ(move("pad(x, 9.0) {low: [0], high: [0], interior: [1]}", "f32[7]", x), (Numbers{1, 9, 2, 9, 3, 9, 4}));
    EXPECT_EQ(move("pad(x, 9.0) {low: [-1], high: [-2], interior: [1]}", "f32[4]", x), (Numbers{9, 2, 9, 3}));
    EXPECT_EQ(move("pad(x, 9.0) {low: [-3], high: [-1]}", "f32[0]", x), Numbers{});
}

TEST(interpret, sources) {
    EXPECT_EQ(run_one("program p() -> (y: i32[2, 3]) {\n  y = iota() {dtype: i32, shape: [2, 3], dimension: 1} : i32[2, 3]\n}\n"),
              (Numbers{0, 1, 2, 0, 1, 2}));
    EXPECT_EQ(run_one("program p() -> (y: f32[]) {\n  y = constant() {value: 0.1} : f32[]\n}\n"), Numbers{0.1f});
    EXPECT_EQ(
        run_one("program p(x: f32[4*b + 1]) -> (y: f32[]) {\n  y = size() {extent: 3*b} : f32[]\n}\n", {f32_array({5}, {1, 2, 3, 4, 5})}),
        Numbers{3});
}

TEST(interpret, reductions) {
    EXPECT_EQ(move("reduce_sum(x) {axes: [0]}", "f32[3]", matrix), (Numbers{5, 7, 9}));
    EXPECT_EQ(move("reduce_sum(x) {axes: [1]}", "f32[2]", matrix), (Numbers{6, 15}));
    EXPECT_EQ(move("reduce_prod(x) {axes: [0, 1]}", "f32[]", matrix), Numbers{720});
    EXPECT_EQ(move("reduce_max(x) {axes: [1]}", "f32[2]", matrix), (Numbers{3, 6}));
    EXPECT_EQ(move("reduce_min(x) {axes: [1]}", "f32[2]", matrix), (Numbers{1, 4}));
    const Numbers with_nan = move("reduce_max(x) {axes: [0]}", "f32[]", f32_array({3}, {1, nan, 3}));
    EXPECT_TRUE(std::isnan(with_nan.at(0)));
    const Array none = f32_array({2, 0}, {});
    EXPECT_EQ(move("reduce_sum(x) {axes: [1]}", "f32[2]", none), (Numbers{0, 0}));
    EXPECT_EQ(move("reduce_prod(x) {axes: [1]}", "f32[2]", none), (Numbers{1, 1}));
    EXPECT_EQ(move("reduce_max(x) {axes: [1]}", "f32[2]", none), (Numbers{-infinity, -infinity}));
    EXPECT_EQ(move("reduce_min(x) {axes: [1]}", "i32[2]", i32_array({2, 0}, {})), (Numbers{2147483647, 2147483647}));
    EXPECT_EQ(move("reduce_sum(x) {axes: [0]}", "i32[]", i32_array({2}, {2147483647, 1})), Numbers{-2147483648});
    EXPECT_EQ(move("reduce_prod(x) {axes: [0]}", "i32[]", i32_array({3}, {123456789, 123456789, 123456789})), Numbers{75731757});
}

TEST(interpret, sums_round_once) {
    EXPECT_EQ(move("reduce_sum(x) {axes: [0]}", "f32[]", f32_array({3}, {16777216, 1, 1})), Numbers{16777218});
}

TEST(interpret, arg_reductions_take_the_first_and_nan) {
    EXPECT_EQ(move("argmax(x) {axis: 1}", "i32[2]", f32_array({2, 4}, {1, 3, 3, 0, 5, nan, 9, nan})), (Numbers{1, 1}));
    EXPECT_EQ(move("argmin(x) {axis: 1}", "i32[2]", f32_array({2, 4}, {1, 0, 3, 0, 5, 6, nan, 0})), (Numbers{1, 2}));
    EXPECT_EQ(move("argmax(x) {axis: 0}", "i32[2]", f32_array({2, 2}, {1, 4, 2, 3})), (Numbers{1, 0}));
}

TEST(interpret, contractions) {
    const std::string product = "program p(a: f32[2, 3], b: f32[3, 2]) -> (c: f32[2, 2]) {\n"
                                "  c = dot_general(a, b) {contract: [[1], [0]]} : f32[2, 2]\n}\n";
    EXPECT_EQ(run_one(product, {matrix, f32_array({3, 2}, {1, 2, 3, 4, 5, 6})}), (Numbers{22, 28, 49, 64}));
    const std::string batched = "program p(a: f32[3, 2, 2], b: f32[2, 3, 2]) -> (c: f32[2]) {\n"
                                "  c = dot_general(a, b) {contract: [[2, 0], [2, 1]], batch: [[1], [0]]} : f32[2]\n}\n";
    const Numbers twelve{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    EXPECT_EQ(run_one(batched, {f32_array({3, 2, 2}, twelve), f32_array({2, 3, 2}, twelve)}), (Numbers{149, 461}));
    EXPECT_EQ(
        run_one(
            "program p(a: i32[1, 2], b: i32[2, 1]) -> (c: i32[1, 1]) {\n  c = dot_general(a, b) {contract: [[1], [0]]} : i32[1, 1]\n}\n",
            {i32_array({1, 2}, {123456789, 1}), i32_array({2, 1}, {987654321, 5})}),
        Numbers{-67153014});
}

} // namespace scalide
