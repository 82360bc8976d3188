#include "expr/base_operators.h"
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <set>
#include <vector>

using namespace scalide;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
const double not_a_number = std::nan("");

double value(const char *op, const std::vector<double> &operands) { return find_base_operator(op)->evaluate(operands); }
double integer_value(const char *op, const std::vector<double> &operands) { return find_base_operator(op)->evaluate_integer(operands); }
bool is_negative_zero(double x) { return x == 0 && std::signbit(x); }

} // namespace

TEST(expr, base_operators_are_found_by_name) {
    std::set<std::string_view> names;
    for (const BaseOperator &row : base_operators()) {
        EXPECT_TRUE(names.insert(row.name).second) << row.name;
        EXPECT_EQ(find_base_operator(row.name), &row);
        const bool is_conversion =
            row.name == "convert_element_type" || row.name == "bitcast_convert_type" || row.name == "reduce_precision";
        EXPECT_EQ(row.evaluate != nullptr, row.shape == Shape::elementwise && !is_conversion) << row.name;
    }
    EXPECT_EQ(find_base_operator("gelu"), nullptr);
}

TEST(expr, max_and_min_keep_nan_and_order_zeros) {
    for (const char *op : {"max", "min"}) {
        EXPECT_TRUE(std::isnan(value(op, {not_a_number, 1})));
        EXPECT_TRUE(std::isnan(value(op, {1, not_a_number})));
    }
    EXPECT_FALSE(std::signbit(value("max", {-0.0, 0.0})));
    EXPECT_FALSE(std::signbit(value("max", {0.0, -0.0})));
    EXPECT_TRUE(is_negative_zero(value("max", {-0.0, -0.0})));
    EXPECT_TRUE(is_negative_zero(value("min", {0.0, -0.0})));
    EXPECT_TRUE(is_negative_zero(value("min", {-0.0, 0.0})));
    EXPECT_EQ(value("max", {-inf, 3}), 3);
    EXPECT_EQ(value("min", {-inf, 3}), -inf);
}

TEST(expr, sign_keeps_zero_and_nan) {
    EXPECT_EQ(value("sign", {-3}), -1);
    EXPECT_EQ(value("sign", {inf}), 1);
    EXPECT_TRUE(is_negative_zero(value("sign", {-0.0})));
    EXPECT_TRUE(std::isnan(value("sign", {not_a_number})));
}

TEST(expr, integers_divide_as_xla_does) {
    EXPECT_EQ(integer_value("div", {-7, 2}), -3);
    EXPECT_EQ(integer_value("div", {7, 0}), -1);
    EXPECT_EQ(integer_value("rem", {-7, 2}), -1);
    EXPECT_EQ(integer_value("rem", {7, 0}), 7);
    EXPECT_EQ(value("div", {-7, 2}), -3.5);
    EXPECT_EQ(value("div", {7, 0}), inf);
    EXPECT_EQ(integer_value("not", {5}), -6);
    EXPECT_EQ(value("not", {1}), 0);
    EXPECT_EQ(value("xor", {6, 3}), 5);
}

TEST(expr, powers_of_two_round_by_magnitude) {
    EXPECT_EQ(value("pow2_down", {5}), 4);
    EXPECT_EQ(value("pow2_up", {5}), 8);
    EXPECT_EQ(value("pow2_nearest", {5}), 4);
    EXPECT_EQ(value("pow2_nearest", {6}), 8);
    EXPECT_EQ(value("pow2_down", {-3}), -2);
    for (const char *op : {"pow2_down", "pow2_up", "pow2_nearest"}) {
        EXPECT_EQ(value(op, {4}), 4);
        EXPECT_EQ(value(op, {0}), 0);
        EXPECT_EQ(value(op, {inf}), inf);
        EXPECT_TRUE(std::isnan(value(op, {not_a_number})));
    }
    const double subnormal = 3 * std::numeric_limits<double>::denorm_min();
    EXPECT_EQ(value("pow2_down", {subnormal}), 2 * std::numeric_limits<double>::denorm_min());
}

TEST(expr, select_takes_the_case_of_its_first_operand) {
    EXPECT_EQ(value("select_n", {0, 10, 20}), 10);
    EXPECT_EQ(value("select_n", {1, 10, 20}), 20);
    EXPECT_EQ(value("select_n", {5, 10, 20}), 20);
}

TEST(expr, integer_pow_takes_its_exponent_last) {
    EXPECT_EQ(find_base_operator("integer_pow")->parameter, "y");
    EXPECT_EQ(value("integer_pow", {-2, 3}), -8);
    EXPECT_EQ(value("integer_pow", {0, -1}), inf);
}

TEST(expr, functions_keep_the_limits) {
    EXPECT_EQ(value("logistic", {-inf}), 0);
    EXPECT_EQ(value("logistic", {-1000}), 0);
    EXPECT_EQ(value("round", {-2.5}), -2);
    EXPECT_EQ(value("is_finite", {inf}), 0);
    EXPECT_EQ(value("rsqrt", {0}), inf);
    EXPECT_EQ(value("eq", {not_a_number, not_a_number}), 0);
}
