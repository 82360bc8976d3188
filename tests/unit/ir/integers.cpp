#include "expr/error.h"
#include "ir/dtype.h"
#include "ir/evaluation.h"
#include <cmath>
#include <gtest/gtest.h>
#include <vector>

namespace scalide {
namespace {

TEST(ir, integers_have_a_range_and_a_sign) {
    EXPECT_EQ(range_of(Dtype::i8).smallest, -128);
    EXPECT_EQ(range_of(Dtype::i8).largest, 127);
    EXPECT_EQ(range_of(Dtype::u16).smallest, 0);
    EXPECT_EQ(range_of(Dtype::u16).largest, 65535);
    EXPECT_EQ(range_of(Dtype::i32).smallest, -2147483648.0);
    EXPECT_EQ(range_of(Dtype::u32).largest, 4294967295.0);
    EXPECT_THROW(range_of(Dtype::boolean), InternalError);
    EXPECT_THROW(range_of(Dtype::f32), InternalError);
    EXPECT_TRUE(is_integer(Dtype::u8) && is_unsigned(Dtype::u8) && !is_signed(Dtype::u8));
    EXPECT_FALSE(is_integer(Dtype::boolean) || is_float(Dtype::boolean));
}

TEST(ir, integers_wrap_around_and_saturate) {
    EXPECT_EQ(wrap_integer(Dtype::u8, -1), 255);
    EXPECT_EQ(wrap_integer(Dtype::i8, 200), -56);
    EXPECT_EQ(wrap_integer(Dtype::u32, -1), 4294967295.0);
    EXPECT_EQ(wrap_integer(Dtype::i32, 2147483648.0), -2147483648.0);
    EXPECT_EQ(saturate_integer(Dtype::u8, 300.5), 255);
    EXPECT_EQ(saturate_integer(Dtype::u8, -0.5), 0);
    EXPECT_EQ(saturate_integer(Dtype::i16, -INFINITY), -32768);
    EXPECT_EQ(saturate_integer(Dtype::i8, NAN), 0);
}

double value(const char *op, Dtype dtype, std::vector<double> operands) {
    const Evaluation evaluate(*find_base_operator(op), dtype, {});
    operands.insert(operands.end(), evaluate.further_arguments().begin(), evaluate.further_arguments().end());
    return wrap_integer(dtype, evaluate(operands));
}

TEST(ir, shifts_and_counts_know_the_width) {
    EXPECT_EQ(value("shift_left", Dtype::u8, {129, 1}), 2);
    EXPECT_EQ(value("shift_left", Dtype::i32, {1, 31}), -2147483648.0);
    EXPECT_EQ(value("shift_left", Dtype::i32, {1, 32}), 0);
    EXPECT_EQ(value("shift_right_logical", Dtype::i8, {-1, 1}), 127);
    EXPECT_EQ(value("shift_right_logical", Dtype::u32, {4294967295.0, 28}), 15);
    EXPECT_EQ(value("shift_right_arithmetic", Dtype::i8, {-128, 100}), -1);
    EXPECT_EQ(value("shift_right_arithmetic", Dtype::u8, {128, 1}), 192);
    EXPECT_EQ(value("shift_right_arithmetic", Dtype::i16, {-5, -1}), -1);
    EXPECT_EQ(value("population_count", Dtype::i8, {-1}), 8);
    EXPECT_EQ(value("clz", Dtype::u16, {1}), 15);
    EXPECT_EQ(value("clz", Dtype::i32, {0}), 32);
    EXPECT_EQ(value("mul", Dtype::u32, {4294967295.0, 4294967295.0}), 1);
    EXPECT_EQ(value("div", Dtype::u8, {7, 0}), 255);
}

} // namespace
} // namespace scalide
