#include "fixture.h"
#include "support/rounding_errors/monte_carlo.h"
#include "support/rounding_errors/running_error.h"
#include <cmath>
#include <gtest/gtest.h>

// What the comparison of kernels with the interpreter allows, and what it notices.

namespace scalide {

namespace {

constexpr double u = 0x1p-24;

/// The only result.
Array run_with_error(const std::string &text, const std::vector<Array> &inputs) {
    return interpret_with_errors(parse_program("program p" + text, "t.scl"), inputs, {}, Mode::stored).at(0);
}

/// The same with its last element made larger by this part of it.
Array with_wrong_last(Array array, double part) {
    array.data.back() *= 1 + part;
    return array;
}

} // namespace

TEST(interpret, running_error_notices_the_smallest_element) {
    const Array squares = run_with_error("(x: f32[2]) -> (y: f32[2]) {\n  y = mul(x, x) : f32[2]\n}\n", {f32_array({2}, {1e6, 1e-6})});
    EXPECT_EQ(difference(with_wrong_last(squares, 2 * u), squares), "");
    EXPECT_NE(difference(with_wrong_last(squares, 32 * u), squares), "");
}

TEST(interpret, running_error_of_what_moves_and_chooses_is_none) {
    const Array largest = run_with_error("(x: f32[2, 2]) -> (y: f32[2]) {\n  z = transpose(x) {permutation: [1, 0]} : f32[2, 2]\n"
                                         "  y = reduce_max(z) {axes: [0]} : f32[2]\n}\n",
                                         {f32_array({2, 2}, {1, 1e6, 3, 1e-6})});
    EXPECT_TRUE(largest.error.empty());
    EXPECT_NE(difference(with_wrong_last(largest, 2 * u), largest), "");
}

TEST(interpret, running_error_of_a_sum_is_of_the_magnitudes_of_its_terms) {
    const Array sums = run_with_error("(x: f32[2, 3]) -> (y: f32[2]) {\n  y = reduce_sum(x) {axes: [1]} : f32[2]\n}\n",
                                      {f32_array({2, 3}, {1e6, 1, -1e6, 1, 1, -1})});
    EXPECT_NEAR(sums.error.at(0), 8 * u * 2e6, u * 1e6);
    EXPECT_NEAR(sums.error.at(1), 8 * u * 3, 8 * u);
    EXPECT_NE(difference(with_wrong_last(sums, 64 * u), sums), "");
}

TEST(interpret, running_error_of_a_product_has_that_of_its_operands) {
    const Array product = run_with_error("(x: f32[1, 2], w: f32[2, 1]) -> (y: f32[1, 1]) {\n  a = exp(x) : f32[1, 2]\n"
                                         "  y = dot_general(a, w) {contract: [[1], [0]]} : f32[1, 1]\n}\n",
                                         {f32_array({1, 2}, {1, 1}), f32_array({2, 1}, {1000, -1000})});
    EXPECT_EQ(product.data.at(0), 0);
    EXPECT_NEAR(product.error.at(0), (4 + 8) * u * 2000 * std::exp(1.0), 2 * u * 2000 * std::exp(1.0));
}

/// Only a value near the middle between two neighbours may become the other.
TEST(interpret, running_error_of_a_narrow_format_is_that_of_values_near_ties) {
    const Array rounded = run_with_error("(x: f32[2], c: f32[2]) -> (y: f16[2]) {\n  a = mul(x, c) : f32[2]\n"
                                         "  y = convert_element_type(a) {dtype: f16} : f16[2]\n}\n",
                                         {f32_array({2}, {1 + 0x1p-11, 1 + 0x1p-12}), f32_array({2}, {1, 1})});
    EXPECT_EQ(rounded.error, (std::vector<double>{0x1p-10, 0}));
}

/// Bounds take the errors of both operands at their worst, draws know that they are one.
TEST(interpret, drawn_errors_are_of_one_origin) {
    const std::string text =
        "program p(x: f32[2], c: f32[2]) -> (y: f32[2], z: f32[2]) {\n  a = exp(x) : f32[2]\n  b = mul(a, c) : f32[2]\n"
        "  y = sub(b, b) : f32[2]\n  z = add(b, b) : f32[2]\n}\n";
    const std::vector<Array> drawn =
        interpret_with_drawn_errors(parse_program(text, "t.scl"), {f32_array({2}, {1, 2}), f32_array({2}, {1e6, 1e-6})}, {}, Mode::stored);
    EXPECT_EQ(drawn[0].error, (std::vector<double>{0, 0}));
    for (size_t i = 0; i < 2; i++) {
        EXPECT_GT(drawn[1].error[i], 4 * u * drawn[1].data[i]);
        EXPECT_LT(drawn[1].error[i], 40 * u * drawn[1].data[i]);
    }
}

TEST(interpret, running_error_of_a_comparison_opens_the_choice) {
    const Array chosen = run_with_error("(x: f32[2], a: f32[2], b: f32[2]) -> (y: f32[2]) {\n  s = sqrt(x) : f32[2]\n"
                                        "  t = gt(s, a) : bool[2]\n  y = select_n(t, a, b) : f32[2]\n}\n",
                                        {f32_array({2}, {4, 4}), f32_array({2}, {2, 1}), f32_array({2}, {7, 8})});
    EXPECT_EQ(chosen.data, (std::vector<double>{2, 8}));
    EXPECT_EQ(chosen.error, (std::vector<double>{5, 0}));
}

/// A scan is one chain, and of equal terms all roundings may be to one side.
TEST(interpret, running_error_of_a_scan_grows_with_its_line) {
    constexpr int64_t length = 1031;
    for (const float term : {0.3064f, 0.5517f, 0.7331f, 0.9173f}) {
        const Array sums = run_with_error("(x: f32[1031]) -> (y: f32[1031]) {\n  y = cumsum(x) {axis: 0, reverse: false} : f32[1031]\n}\n",
                                          {f32_array({length}, std::vector<double>(length, term))});
        Array chain = sums;
        float sum = 0;
        for (double &element : chain.data) element = sum += term;
        EXPECT_EQ(difference(chain, sums), "") << term;
        EXPECT_NE(difference(with_wrong_last(sums, length * u), sums), "");
    }
}

/// Below the smallest normal number a rounding is as large as there.
TEST(interpret, running_error_of_subnormal_numbers_is_in_their_units) {
    const Array products = run_with_error("(x: f32[2], c: f32[2]) -> (y: f32[2]) {\n  y = mul(x, c) : f32[2]\n}\n",
                                          {f32_array({2}, {0x1p-148, 0}), f32_array({2}, {1.25, 1.25})});
    EXPECT_EQ(products.error, (std::vector<double>{0x1p-148, 0}));
}

/// vdpbf16ps takes subnormal operands for zero.
TEST(interpret, running_error_of_a_contraction_has_room_for_lost_subnormal_operands) {
    const Array product = run_with_error("(x: f32[1, 2], y: f32[2, 2]) -> (z: f32[1, 2]) {\n"
                                         "  z = dot_general(x, y) {contract: [[1], [0]]} : f32[1, 2]\n}\n",
                                         {f32_array({1, 2}, {0x1p-130, 0}), f32_array({2, 2}, {8, 0, 1, 0})});
    EXPECT_GE(product.error[0], 0x1p-127);
    EXPECT_LE(product.error[0], 0x1p-120);
    EXPECT_EQ(product.error[1], 0);
}

} // namespace scalide
