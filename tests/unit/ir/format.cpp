#include "expr/base_operators.h"
#include "expr/error.h"
#include "ir/dtype.h"
#include <cmath>
#include <gtest/gtest.h>
#include <limits>

namespace scalide {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

struct Largest {
    Dtype dtype;
    int bits;
    double largest, smallest_normal, smallest;
};

TEST(ir, formats_have_the_published_ranges) {
    const Largest rows[] = {
        {Dtype::f32, 32, std::numeric_limits<float>::max(), std::ldexp(1, -126), std::ldexp(1, -149)},
        {Dtype::f16, 16, 65504, std::ldexp(1, -14), std::ldexp(1, -24)},
        {Dtype::bf16, 16, std::ldexp(255, 120), std::ldexp(1, -126), std::ldexp(1, -133)},
        {Dtype::f8_e4m3fn, 8, 448, std::ldexp(1, -6), std::ldexp(1, -9)},
        {Dtype::f8_e5m2, 8, 57344, std::ldexp(1, -14), std::ldexp(1, -16)},
        {Dtype::f8_e4m3fnuz, 8, 240, std::ldexp(1, -7), std::ldexp(1, -10)},
        {Dtype::f8_e5m2fnuz, 8, 57344, std::ldexp(1, -15), std::ldexp(1, -17)},
        {Dtype::f8_e3m4, 8, 15.5, 0.25, std::ldexp(1, -6)},
        {Dtype::f8_e4m3, 8, 240, std::ldexp(1, -6), std::ldexp(1, -9)},
        {Dtype::f8_e4m3b11fnuz, 8, 30, std::ldexp(1, -10), std::ldexp(1, -13)},
    };
    for (const Largest &row : rows) {
        const FormatSpec &format = format_of(row.dtype);
        EXPECT_EQ(format.dtype, row.dtype);
        EXPECT_EQ(format.bits(), row.bits);
        EXPECT_EQ(decode(format, format.max_code), row.largest) << to_string(row.dtype);
        EXPECT_EQ(decode(format, 1u << format.mantissa_bits), row.smallest_normal) << to_string(row.dtype);
        EXPECT_EQ(decode(format, 1), row.smallest) << to_string(row.dtype);
        EXPECT_TRUE(std::isnan(decode(format, format.nan_code))) << to_string(row.dtype);
    }
}

TEST(ir, every_code_decodes_and_encodes_to_itself) {
    for (Dtype dtype : all_dtypes()) {
        if (!is_float(dtype) || size_of(dtype) > 2) continue;
        const FormatSpec &format = format_of(dtype);
        for (uint32_t code = 0; code < 1u << format.bits(); code++) {
            double value = decode(format, code);
            uint32_t back = encode(format, value, Overflow::format);
            if (std::isnan(value)) {
                EXPECT_EQ(encode(format, value), format.nan_code) << to_string(dtype);
            } else {
                ASSERT_EQ(back, code) << to_string(dtype) << " " << value;
            }
        }
    }
}

TEST(ir, encode_saturates_or_follows_the_format) {
    const FormatSpec &e4m3 = format_of(Dtype::f8_e4m3fn), &e5m2 = format_of(Dtype::f8_e5m2), &fnuz = format_of(Dtype::f8_e4m3fnuz);
    EXPECT_EQ(encode(e4m3, 464), 0x7eu); // half-way to the code of NaN, ties to even
    EXPECT_EQ(encode(e4m3, 464, Overflow::format), 0x7eu);
    EXPECT_EQ(encode(e4m3, 465), 0x7eu);
    EXPECT_EQ(encode(e4m3, -465, Overflow::format), 0xffu);
    EXPECT_EQ(encode(e5m2, 1e300), 0x7bu);
    EXPECT_EQ(encode(e5m2, -1e300, Overflow::format), 0xfcu);
    EXPECT_EQ(encode(fnuz, infinity, Overflow::format), 0x80u);
    EXPECT_EQ(encode(fnuz, -0.0), 0u);
    EXPECT_EQ(encode(fnuz, -1e-30), 0u);
    EXPECT_EQ(encode(e4m3, -1e-30), 0x80u);
    EXPECT_EQ(encode(e4m3, -std::nan("")), 0x7fu);
    EXPECT_EQ(encode(e4m3, -std::nan(""), Overflow::format), 0xffu);
}

TEST(ir, what_is_infinite_stays_so_where_numbers_saturate) {
    const FormatSpec &e4m3 = format_of(Dtype::f8_e4m3fn), &e5m2 = format_of(Dtype::f8_e5m2), &fnuz = format_of(Dtype::f8_e5m2fnuz);
    EXPECT_EQ(round_to(Dtype::f16, infinity), infinity);
    EXPECT_EQ(round_to(Dtype::bf16, -infinity), -infinity);
    EXPECT_EQ(encode(e5m2, -infinity), 0xfcu);
    EXPECT_EQ(encode(e4m3, -infinity), e4m3.nan_code);
    EXPECT_EQ(encode(fnuz, infinity), fnuz.nan_code);
    EXPECT_EQ(encode(e4m3, -infinity, Overflow::clip), 0xfeu);
    EXPECT_EQ(encode(e5m2, infinity, Overflow::clip), 0x7bu);
    EXPECT_EQ(encode(e5m2, std::nan(""), Overflow::clip), e5m2.nan_code);
}

TEST(ir, e8m0_rounds_ties_up_or_to_even) {
    const FormatSpec &up = format_of(Dtype::f8_e8m0fnu);
    FormatSpec even = up;
    even.ties = Ties::even;
    EXPECT_EQ(decode(up, encode(up, 3)), 4);
    EXPECT_EQ(decode(even, encode(even, 3)), 2);
    EXPECT_EQ(decode(up, encode(up, 1.5)), 2);
    EXPECT_EQ(decode(even, encode(even, 1.5)), 2);
    EXPECT_EQ(decode(up, encode(up, 6)), 8);
    EXPECT_EQ(decode(up, encode(up, 0.75)), 1);
    EXPECT_EQ(decode(even, encode(even, 0.75)), 0.5);
    EXPECT_EQ(encode(up, 0), 0u);
    EXPECT_EQ(encode(up, -1), 0u);
    EXPECT_EQ(encode(up, infinity), 255u);
    EXPECT_EQ(encode(up, -infinity), 255u);
    EXPECT_EQ(encode(up, std::ldexp(1, 200)), 254u);
    EXPECT_EQ(encode(up, infinity, Overflow::clip), 254u);
    EXPECT_EQ(encode(up, -infinity, Overflow::clip), 0u);
    EXPECT_EQ(encode(up, 0, Overflow::format), 255u);
    EXPECT_EQ(encode(up, -1, Overflow::format), 255u);
    EXPECT_EQ(encode(up, infinity, Overflow::format), 255u);
    EXPECT_EQ(encode(up, std::ldexp(1, -140), Overflow::format), 0u);
    EXPECT_EQ(encode(up, std::ldexp(1, -127)), 0u);
    EXPECT_EQ(encode(up, std::ldexp(1.001, -127)), 1u);
}

TEST(ir, rounds_once_from_f64) {
    // Just above the tie between 1 and 1 + 2^-10; a first rounding to f32 would land on the tie.
    double above_tie = 1 + std::ldexp(1, -11) + std::ldexp(1, -40);
    EXPECT_EQ(round_to(Dtype::f16, above_tie), 1 + std::ldexp(1, -10));
    EXPECT_EQ(round_to(Dtype::f32, 1e300), infinity);
    EXPECT_EQ(round_to(Dtype::f32, 1 + 1e-12), 1);
    EXPECT_EQ(round_to(Dtype::f16, 1e300), 65504);
    EXPECT_EQ(round_to(Dtype::f16, 1e300, Overflow::format), infinity);
    EXPECT_TRUE(std::signbit(round_to(Dtype::bf16, -0.0)));
    for (double value : {0.1, -3e-39, 1e-46, 3.5e38, 7e-46}) EXPECT_EQ(round_to(Dtype::f32, value), static_cast<float>(value)) << value;
}

TEST(ir, reduce_precision_has_no_subnormal_results) {
    EXPECT_EQ(reduce_precision(17, 4, 3), 16);
    EXPECT_EQ(reduce_precision(19, 4, 3), 20);
    EXPECT_EQ(reduce_precision(247, 4, 3), 240);
    EXPECT_EQ(reduce_precision(-250, 4, 3), -infinity);
    EXPECT_EQ(reduce_precision(0.012, 4, 3), 0);
    EXPECT_TRUE(std::signbit(reduce_precision(-0.012, 4, 3)));
    EXPECT_TRUE(std::isnan(reduce_precision(std::nan(""), 4, 3)));
    EXPECT_EQ(reduce_precision(0.1f, 8, 23), 0.1f);
    EXPECT_THROW(reduce_precision(1, 9, 3), InternalError);
}

// Nothing below zero appears; that small negative numbers become -0 is why its row claims no more.
TEST(ir, conversions_keep_signs_as_their_row_claims) {
    EXPECT_EQ(base_operator("convert_element_type").signs.never_negative, From::all_operands);
    EXPECT_EQ(base_operator("convert_element_type").signs.never_negative_zero, From::nothing);
    EXPECT_TRUE(std::signbit(round_to(Dtype::f16, -1e-30)));
    for (const Dtype dtype : all_dtypes())
        for (const double number : {0.0, 1e-310, 1e-30, 1.0, 1e300, std::numeric_limits<double>::infinity()})
            if (is_float(dtype)) EXPECT_FALSE(std::signbit(round_to(dtype, number)) && !std::isnan(round_to(dtype, number))) << number;
}

TEST(ir, words_without_a_storage_format) {
    EXPECT_THROW(format_of(Dtype::i32), InternalError);
    EXPECT_THROW(format_of(Dtype::boolean), InternalError);
    EXPECT_THROW(format_of(Dtype::f64), InternalError);
    EXPECT_EQ(round_to(Dtype::f64, 0.1), 0.1);
}

} // namespace
} // namespace scalide
