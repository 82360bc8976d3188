// scalide_convert of the runtime gives the bits of the operator convert_element_type, for every pair of dtypes.
#include "ir/dtype.h"
#include "scalide/scalide.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <vector>

namespace scalide {

namespace {

struct RuntimeContext {
    scalide_context *handle = nullptr;
    RuntimeContext() { EXPECT_EQ(scalide_context_create(nullptr, &handle), SCALIDE_OK); }
    ~RuntimeContext() { scalide_context_destroy(handle); }
};

int32_t number_of(Dtype dtype) { return static_cast<int32_t>(dtype); }

/// Returns the bits of an element in memory.
uint64_t bits_at(const std::vector<unsigned char> &memory, size_t index, size_t size) {
    uint64_t bits = 0;
    std::memcpy(&bits, memory.data() + index * size, size);
    return bits;
}

uint64_t expected_bits(Dtype to, double value, Dtype from) {
    if (to == Dtype::boolean) return value != 0;
    if (to == Dtype::i64) {
        const double integer = is_float(from) ? saturate_integer(to, value) : value;
        return integer < 0x1p63 ? static_cast<uint64_t>(static_cast<int64_t>(integer)) : uint64_t{INT64_MAX};
    }
    if (is_integer(to)) {
        const double integer = is_float(from) ? saturate_integer(to, value) : wrap_integer(to, value);
        return code_of(to, integer) & (UINT64_MAX >> (64 - bits_of(to)));
    }
    if (to == Dtype::f64) {
        uint64_t bits;
        std::memcpy(&bits, &value, sizeof(bits));
        return bits;
    }
    return encode(format_of(to), value, to == Dtype::f32 ? Overflow::format : Overflow::saturate);
}

/// Numbers near all boundaries of the small formats: every number of them, the half-way points, and their neighbours in f64.
std::vector<double> difficult_numbers() {
    std::vector<double> numbers = {
        0.0, -0.0, 1e300, -1e300, 5e-324, std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()};
    for (Dtype dtype : all_dtypes()) {
        if (!is_float(dtype) || bits_of(dtype) > 16) continue;
        for (uint32_t code = 0; code < 1u << bits_of(dtype); code += bits_of(dtype) == 8 ? 1 : 7) {
            const double value = value_of(dtype, code), next = value_of(dtype, (code + 1) & ((1u << bits_of(dtype)) - 1));
            if (std::isnan(value) || std::isnan(next)) continue;
            const double middle = std::isinf(value) || std::isinf(next) ? value * 1.03125 : value + (next - value) / 2;
            for (double number : {value, middle, std::nextafter(middle, 1e308), std::nextafter(middle, -1e308)}) numbers.push_back(number);
        }
    }
    std::mt19937_64 random(1);
    for (int i = 0; i < 20000; i++) {
        const uint64_t bits = random();
        double value;
        std::memcpy(&value, &bits, sizeof(value));
        if (!std::isnan(value)) numbers.push_back(value);
        numbers.push_back(std::ldexp(static_cast<double>(static_cast<int64_t>(random())), static_cast<int>(random() % 200) - 160));
    }
    return numbers;
}

std::vector<unsigned char> converted(const RuntimeContext &context, const void *from, Dtype from_dtype, Dtype to, size_t count) {
    std::vector<unsigned char> memory(count * bits_of(to) / 8);
    const auto extent = static_cast<int64_t>(count);
    const scalide_array source = scalide_dense_array(const_cast<void *>(from), nullptr, number_of(from_dtype), 1, &extent);
    scalide_array target = scalide_dense_array(memory.data(), nullptr, number_of(to), 1, &extent);
    EXPECT_EQ(scalide_convert(context.handle, &source, &target), SCALIDE_OK) << scalide_message(context.handle);
    return memory;
}

TEST(ir, scalide_convert_rounds_f64_as_the_interpreter) {
    const RuntimeContext context;
    std::vector<double> numbers = difficult_numbers();
    numbers.push_back(std::numeric_limits<double>::quiet_NaN());
    for (Dtype to : all_dtypes()) {
        const std::vector<unsigned char> memory = converted(context, numbers.data(), Dtype::f64, to, numbers.size());
        for (size_t i = 0; i < numbers.size(); i++) {
            if (std::isnan(numbers[i]) && is_float(to) && bits_of(to) >= 32) continue; // any NaN
            ASSERT_EQ(bits_at(memory, i, bits_of(to) / 8), expected_bits(to, numbers[i], Dtype::f64)) << to_string(to) << ' ' << numbers[i];
        }
    }
}

TEST(ir, scalide_convert_reads_every_element_of_8_and_16_bits) {
    const RuntimeContext context;
    for (Dtype from : all_dtypes()) {
        if (bits_of(from) > 16 || from == Dtype::boolean) continue;
        const size_t count = size_t{1} << bits_of(from), size = bits_of(from) / 8;
        std::vector<unsigned char> codes(count * size);
        for (size_t i = 0; i < count; i++) std::memcpy(codes.data() + i * size, &i, size);
        for (Dtype to : all_dtypes()) {
            const std::vector<unsigned char> memory = converted(context, codes.data(), from, to, count);
            for (size_t i = 0; i < count; i++) {
                const double value = value_of(from, static_cast<uint32_t>(i));
                const uint64_t bits = bits_at(memory, i, bits_of(to) / 8);
                if (from == to) {
                    ASSERT_EQ(bits, i) << to_string(from);
                } else if (std::isnan(value) && is_float(to) && bits_of(to) >= 32) {
                    ASSERT_TRUE(to == Dtype::f64 || std::isnan(value_of(to, static_cast<uint32_t>(bits))));
                } else {
                    ASSERT_EQ(bits, expected_bits(to, value, from)) << to_string(from) << " to " << to_string(to) << ' ' << value;
                }
            }
        }
    }
}

/// The rules' scale of a row: norm_to_scale(largest magnitude, target).
float expected_scale(double largest, double target) {
    if (!(largest > 0) || !std::isfinite(largest)) return 1;
    return static_cast<float>(std::clamp(std::exp2(std::floor(std::log2(largest / target))), 0x1p-126, 0x1p127));
}

TEST(ir, scalide_convert_chooses_the_scale_of_the_rules) {
    const RuntimeContext context;
    std::mt19937 random(2);
    const double infinity = std::numeric_limits<double>::infinity();
    for (Dtype to : {Dtype::f8_e4m3fn, Dtype::f8_e5m2, Dtype::f8_e3m4, Dtype::f8_e4m3fnuz, Dtype::f16, Dtype::bf16, Dtype::f32}) {
        const double target = bits_of(to) == 8 ? value_of(to, format_of(to).max_code) / 2 : to == Dtype::f16 ? 16384 : 1;
        for (double factor : {1.0, 3e-30, 7e30, 1e-44, 0.0, 1.875, 224.0, infinity}) {
            std::vector<float> values(300);
            double largest = 0;
            for (float &value : values) {
                value = static_cast<float>((static_cast<double>(random()) / 2147483648.0 - 1) * factor);
                largest = std::max(largest, std::abs(static_cast<double>(value)));
            }
            const int64_t extents[] = {20, 15};
            std::vector<unsigned char> memory(300 * bits_of(to) / 8);
            float scale = 0;
            const scalide_array source = scalide_dense_array(values.data(), nullptr, SCALIDE_F32, 2, extents);
            scalide_array result = scalide_dense_array(memory.data(), &scale, number_of(to), 2, extents);
            ASSERT_EQ(scalide_convert(context.handle, &source, &result), SCALIDE_OK);
            ASSERT_EQ(scale, expected_scale(factor == infinity ? infinity : largest, target)) << to_string(to) << ' ' << factor;
            for (size_t i = 0; i < 300 && factor != infinity; i++)
                ASSERT_EQ(bits_at(memory, i, bits_of(to) / 8), expected_bits(to, static_cast<double>(values[i]) / scale, Dtype::f32));
        }
    }
}

} // namespace

} // namespace scalide
