// scalide_convert: strides, scales, errors. tests/unit/ir/convert.cpp compares the bits of all dtypes.
#include "fixture.h"
#include <cmath>
#include <limits>
#include <string>

using scalide::test::Context;

namespace {

scalide_array array_of(void *data, float *scale, int32_t dtype, std::initializer_list<int64_t> shape) {
    return scalide_dense_array(data, scale, dtype, static_cast<int32_t>(shape.size()), shape.begin());
}

/// Returns the message of a conversion that must fail.
std::string refusal(const scalide_array &from, scalide_array to) {
    const Context context(1);
    EXPECT_EQ(scalide_convert(context.handle, &from, &to), SCALIDE_INVALID_ARGUMENT);
    return scalide_message(context.handle);
}

TEST(runtime, convert_follows_strides_of_both_arrays) {
    const Context context(1);
    std::vector<float> values(6 * 700);
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
    std::vector<uint16_t> halves(values.size());
    scalide_array from = array_of(values.data(), nullptr, SCALIDE_F32, {2, 700, 3});
    from.stride[0] = 1; // the axes 0 and 2 are exchanged
    from.stride[1] = 6;
    from.stride[2] = 2;
    scalide_array to = array_of(halves.data() + 2, nullptr, SCALIDE_BF16, {2, 700, 3});
    to.stride[2] = -1; // backwards
    ASSERT_EQ(scalide_convert(context.handle, &from, &to), SCALIDE_OK) << scalide_message(context.handle);
    std::vector<float> back(values.size());
    scalide_array result = array_of(back.data(), nullptr, SCALIDE_F32, {2, 700, 3});
    ASSERT_EQ(scalide_convert(context.handle, &to, &result), SCALIDE_OK);
    for (size_t i = 0; i < 2; ++i)
        for (size_t j = 0; j < 700; ++j)
            for (size_t k = 0; k < 3; ++k) {
                const float value = values[i + 6 * j + 2 * k];
                EXPECT_NEAR(back[(i * 700 + j) * 3 + k], value, value / 256);
            }
}

TEST(runtime, convert_between_scaled_arrays_keeps_what_the_format_can_hold) {
    const Context context(1);
    float values[] = {1e-6f, -448e-6f, 3e-6f, 0}, back[4], scale = 7;
    uint8_t codes[4];
    const scalide_array from = array_of(values, nullptr, SCALIDE_F32, {4});
    scalide_array to = array_of(codes, &scale, SCALIDE_F8_E4M3FN, {4}), result = array_of(back, nullptr, SCALIDE_F32, {4});
    ASSERT_EQ(scalide_convert(context.handle, &from, &to), SCALIDE_OK);
    EXPECT_EQ(scale, std::exp2(std::floor(std::log2(448e-6f / 224))));
    ASSERT_EQ(scalide_convert(context.handle, &to, &result), SCALIDE_OK);
    for (int i = 0; i < 4; ++i) EXPECT_NEAR(back[i], values[i], std::abs(values[i]) / 16);
    uint16_t halves[4];
    float half_scale = 0;
    scalide_array half = array_of(halves, &half_scale, SCALIDE_F16, {4});
    ASSERT_EQ(scalide_convert(context.handle, &to, &half), SCALIDE_OK);
    float again[4];
    scalide_array exact = array_of(again, nullptr, SCALIDE_F32, {4});
    ASSERT_EQ(scalide_convert(context.handle, &half, &exact), SCALIDE_OK);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(again[i], back[i]); // f16 holds every number of e4m3
}

TEST(runtime, convert_of_64_bits_keeps_all_bits) {
    const Context context(1);
    int64_t numbers[] = {(int64_t{1} << 53) + 1, -(int64_t{1} << 32) - 7, INT64_MAX, INT64_MIN,
                         (int64_t{1} << 60) + (int64_t{1} << 35) + 1};
    constexpr int count = 5;
    const scalide_array from = array_of(numbers, nullptr, SCALIDE_I64, {count});
    int32_t low[count];
    uint32_t word[count];
    bool truth[count];
    float single[count];
    int64_t same[count];
    scalide_array to[] = {array_of(low, nullptr, SCALIDE_I32, {count}), array_of(word, nullptr, SCALIDE_U32, {count}),
                          array_of(truth, nullptr, SCALIDE_BOOL, {count}), array_of(single, nullptr, SCALIDE_F32, {count}),
                          array_of(same, nullptr, SCALIDE_I64, {count})};
    for (scalide_array &array : to) ASSERT_EQ(scalide_convert(context.handle, &from, &array), SCALIDE_OK);
    for (int i = 0; i < count; ++i) {
        EXPECT_EQ(low[i], static_cast<int32_t>(numbers[i]));
        EXPECT_EQ(word[i], static_cast<uint32_t>(numbers[i]));
        EXPECT_TRUE(truth[i]);
        EXPECT_EQ(single[i], static_cast<float>(numbers[i])); // rounded once
        EXPECT_EQ(same[i], numbers[i]);
    }
    scalide_array back = array_of(same, nullptr, SCALIDE_I64, {count});
    float values[count] = {1.75f, -0x1p40f, 0x1p63f, -0x1p70f, NAN};
    const scalide_array floats = array_of(values, nullptr, SCALIDE_F32, {count});
    ASSERT_EQ(scalide_convert(context.handle, &floats, &back), SCALIDE_OK);
    for (int i = 0; i < count; ++i)
        EXPECT_EQ(same[i], (std::vector<int64_t>{1, -(int64_t{1} << 40), INT64_MAX, INT64_MIN, 0}[static_cast<size_t>(i)]));
    ASSERT_EQ(scalide_convert(context.handle, &to[1], &back), SCALIDE_OK); // from u32
    for (int i = 0; i < count; ++i) EXPECT_EQ(same[i], int64_t{word[i]});
}

TEST(runtime, convert_of_scalars_and_of_arrays_without_elements) {
    const Context context(1);
    float number = 2.5f;
    int32_t integer = 0;
    const scalide_array from = array_of(&number, nullptr, SCALIDE_F32, {});
    scalide_array to = array_of(&integer, nullptr, SCALIDE_I32, {});
    EXPECT_EQ(scalide_convert(context.handle, &from, &to), SCALIDE_OK);
    EXPECT_EQ(integer, 2);
    float scale = 0;
    const scalide_array nothing = array_of(nullptr, nullptr, SCALIDE_F32, {3, 0});
    scalide_array none = array_of(nullptr, &scale, SCALIDE_F16, {3, 0});
    EXPECT_EQ(scalide_convert(context.handle, &nothing, &none), SCALIDE_OK);
    EXPECT_EQ(scale, 1);
}

TEST(runtime, convert_says_what_is_wrong) {
    float data[4] = {}, scale = 1;
    const scalide_array good = array_of(data, nullptr, SCALIDE_F32, {4});
    EXPECT_EQ(refusal(array_of(data, nullptr, 77, {4}), good), "scalide_convert: from: unknown dtype 77. Use a scalide_dtype.");
    EXPECT_EQ(refusal(good, array_of(data, nullptr, SCALIDE_F32, {2, 2})),
              "scalide_convert: from and to must have the same shape, got the ranks 1 and 2.");
    EXPECT_EQ(refusal(good, array_of(data, nullptr, SCALIDE_F32, {3})),
              "scalide_convert: from and to must have the same shape, got 4 and 3 as extent 0.");
    EXPECT_EQ(refusal(good, array_of(data, &scale, SCALIDE_I8, {4})),
              "scalide_convert: to: a scaled array must have a float dtype, got i8. Pass scale = NULL.");
    EXPECT_EQ(refusal(good, array_of(nullptr, nullptr, SCALIDE_F16, {4})),
              "scalide_convert: to: data must point to the elements, got NULL.");
    scalide_array deep = good;
    deep.rank = 9;
    const scalide_array huge = array_of(data, nullptr, SCALIDE_F32, {int64_t{1} << 32, int64_t{1} << 32});
    EXPECT_EQ(refusal(huge, huge), "scalide_convert: an array must have at most 2146435072 elements. Split the array.");
    EXPECT_EQ(refusal(deep, deep), "scalide_convert: from: rank must be in [0, 8], got 9.");
    const Context context(1);
    EXPECT_EQ(scalide_convert(nullptr, &good, &deep), SCALIDE_INVALID_ARGUMENT); // no message
    EXPECT_EQ(scalide_convert(context.handle, nullptr, &deep), SCALIDE_INVALID_ARGUMENT);
    EXPECT_EQ(scalide_convert(context.handle, &good, nullptr), SCALIDE_INVALID_ARGUMENT);
}

TEST(runtime, extents_and_symbols_are_described) {
    scalide_extent_info extent;
    ASSERT_EQ(scalide_describe_extent(sample_program(), 0, 0, &extent), SCALIDE_OK);
    EXPECT_STREQ(extent.text, "b");
    EXPECT_EQ(extent.value, -1);
    ASSERT_EQ(scalide_describe_extent(sample_program(), 0, 1, &extent), SCALIDE_OK);
    EXPECT_STREQ(extent.text, "4");
    EXPECT_EQ(extent.value, 4);
    EXPECT_EQ(scalide_describe_extent(sample_program(), 0, 2, &extent), SCALIDE_INVALID_ARGUMENT);
    EXPECT_EQ(scalide_describe_extent(sample_program(), 4, 0, &extent), SCALIDE_INVALID_ARGUMENT);
    EXPECT_EQ(scalide_describe_extent(nullptr, 0, 0, &extent), SCALIDE_INVALID_ARGUMENT);
    ASSERT_EQ(scalide_symbol_count(sample_program()), 1u);
    scalide_symbol_info symbol;
    ASSERT_EQ(scalide_describe_symbol(sample_program(), 0, &symbol), SCALIDE_OK);
    EXPECT_STREQ(symbol.name, "b");
    EXPECT_EQ(symbol.minimum, 2);
    EXPECT_EQ(symbol.maximum, 1024);
    EXPECT_EQ(symbol.multiple, 2);
    EXPECT_EQ(scalide_describe_symbol(sample_program(), 1, &symbol), SCALIDE_INVALID_ARGUMENT);
    EXPECT_STREQ(scalide_program_hash(sample_program()), "0123");
}

TEST(runtime, shapes_of_all_arguments_from_the_symbols) {
    const Context context(1);
    std::array<scalide_array, 4> arrays = {};
    const int64_t b = 6, odd = 7;
    ASSERT_EQ(scalide_shape_arguments(context.handle, sample_program(), &b, 1, arrays.data(), 4), SCALIDE_OK);
    EXPECT_EQ(arrays[0].extent[0], 6);
    EXPECT_EQ(arrays[0].stride[0], 4);
    EXPECT_EQ(arrays[1].rank, 1);
    EXPECT_EQ(arrays[3].rank, 0);
    EXPECT_EQ(scalide_shape_arguments(context.handle, sample_program(), &odd, 1, arrays.data(), 4), SCALIDE_INVALID_ARGUMENT);
    EXPECT_STREQ(scalide_message(context.handle), "sample: b must be a multiple of 2 in [2, 1024], got 7.");
    EXPECT_EQ(scalide_shape_arguments(context.handle, sample_program(), nullptr, 0, arrays.data(), 4), SCALIDE_INVALID_ARGUMENT);
    EXPECT_STREQ(scalide_message(context.handle),
                 "sample: the number of values must be the number of symbols, 1, got 0. scalide_describe_symbol lists the symbols.");
}

} // namespace
