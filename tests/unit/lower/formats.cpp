#include "lower/formats/formats.h"
#include "expr/error.h"
#include "lower/halide/strict.h"
#include "support/pointwise.h"
#include <bit>
#include <cmath>
#include <gtest/gtest.h>
#include <random>

namespace scalide {
namespace {

using Halide::Expr;
using test::Pointwise;
using Words = std::vector<uint32_t>;

std::vector<Dtype> narrow_dtypes() {
    std::vector<Dtype> narrow;
    for (Dtype dtype : all_dtypes()) {
        if (is_float(dtype) && size_of(dtype) <= 2) narrow.push_back(dtype);
    }
    return narrow;
}

Words codes_of(const FormatSpec &format) {
    Words codes(size_t(1) << format.bits());
    for (uint32_t code = 0; code < codes.size(); code++) codes[code] = code;
    return codes;
}

uint32_t float_word(double value) { return std::bit_cast<uint32_t>(static_cast<float>(value)); }

// f16 and bf16 values, what lies half-way between the codes of `format` with both neighbours, and random bits.
Words encode_arguments(const FormatSpec &format, uint32_t seed) {
    Words words;
    for (uint32_t code = 0; code < 65536; code++) {
        words.push_back(code << 16);
        words.push_back(float_word(decode(format_of(Dtype::f16), code)));
    }
    for (uint32_t code = 0; code <= format.max_code; code++) {
        uint32_t tie = float_word((decode(format, code) + decode(format, code + 1)) / 2);
        for (uint32_t word : {tie - 1, tie, tie + 1}) words.insert(words.end(), {word, word ^ 0x80000000u});
    }
    std::mt19937 random(seed);
    for (int i = 0; i < 1 << 18; i++) words.push_back(random());
    return words;
}

TEST(lower, decodes_every_code) {
    for (Dtype dtype : narrow_dtypes()) {
        const FormatSpec &format = format_of(dtype);
        Words codes = codes_of(format);
        Words values = Pointwise([&](const Expr &word) { return decode(dtype, Halide::cast(storage_type(dtype), word)); })(codes);
        for (uint32_t code : codes) {
            auto got = std::bit_cast<float>(values[code]);
            double expected = decode(format, code);
            bool same = std::isnan(expected) ? std::isnan(got) : values[code] == float_word(expected);
            ASSERT_TRUE(same) << to_string(dtype) << " code " << code << ": got " << got << ", expected " << expected;
        }
    }
}

/// Calls check(dtype, format, words, overflow) for all low-precision dtypes and for each treatment of overflow.
template<typename Check>
void for_all_conversions(uint32_t seed, Check check) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    for (Dtype dtype : narrow_dtypes()) {
        const FormatSpec &format = format_of(dtype);
        const Words words = encode_arguments(format, seed);
        for (Overflow overflow : {Overflow::saturate, Overflow::clip, Overflow::format}) check(dtype, format, words, overflow);
    }
}

TEST(lower, encodes_like_the_software_codec) {
    for_all_conversions(3, [](Dtype dtype, const FormatSpec &format, const Words &words, Overflow overflow) {
        Words codes = Pointwise([&](const Expr &word) { return encode(dtype, Halide::reinterpret<float>(word), overflow); })(words);
        for (size_t i = 0; i < words.size(); i++) {
            auto value = std::bit_cast<float>(words[i]);
            ASSERT_EQ(codes[i], encode(format, value, overflow)) << to_string(dtype) << " of " << value;
        }
    });
}

// What a packing rounds and widens again never has the form of a code.
TEST(lower, rounds_in_place_as_through_codes) {
    for_all_conversions(5, [](Dtype dtype, const FormatSpec &format, const Words &words, Overflow overflow) {
        Words rounded = Pointwise([&](const Expr &word) { return round_to(dtype, Halide::reinterpret<float>(word), overflow); })(words);
        for (size_t i = 0; i < words.size(); i++) {
            const auto value = std::bit_cast<float>(words[i]), got = std::bit_cast<float>(rounded[i]);
            const double expected = decode(format, encode(format, value, overflow));
            const bool same = std::isnan(expected) ? std::isnan(got) : rounded[i] == float_word(expected);
            ASSERT_TRUE(same) << to_string(dtype) << " of " << value << ": got " << got << ", expected " << expected;
        }
    });
}

// Arithmetic in Halide's fast mode on both sides: nothing may be folded into the conversions.
TEST(lower, codecs_hold_inside_fast_arithmetic) {
    for (Dtype dtype : {Dtype::f16, Dtype::bf16, Dtype::f8_e4m3fn}) {
        const FormatSpec &format = format_of(dtype);
        Words codes = codes_of(format);
        Words results = Pointwise([&](const Expr &word) {
            Expr value = decode(dtype, Halide::cast(storage_type(dtype), word));
            return encode(dtype, value * value + value, Overflow::format);
        })(codes);
        for (uint32_t code : codes) {
            double value = decode(format, code);
            if (!std::isfinite(value)) continue;
            // Fast arithmetic may contract: both roundings of the f32 sum are right.
            auto x = static_cast<float>(value);
            uint32_t contracted = encode(format, std::fma(x, x, x), Overflow::format),
                     separate = encode(format, x * x + x, Overflow::format);
            bool same = results[code] == contracted || results[code] == separate;
            ASSERT_TRUE(same) << to_string(dtype) << " code " << code << ": got " << results[code] << ", expected " << separate;
        }
    }
}

TEST(lower, bf16_words_of_narrow_codes_are_exact) {
    for (Dtype dtype : {Dtype::bf16, Dtype::f8_e4m3fn, Dtype::f8_e5m2, Dtype::f8_e4m3fnuz, Dtype::f8_e5m2fnuz, Dtype::f8_e3m4,
                        Dtype::f8_e4m3, Dtype::f8_e4m3b11fnuz}) {
        const FormatSpec &format = format_of(dtype);
        Words codes = codes_of(format);
        Words words = Pointwise([&](const Expr &word) {
            return Halide::reinterpret<uint16_t>(decode_bf16(dtype, Halide::cast(storage_type(dtype), word)));
        })(codes);
        for (uint32_t code : codes) {
            double got = decode(format_of(Dtype::bf16), words[code]), expected = decode(format, code);
            ASSERT_TRUE(got == expected || (std::isnan(got) && std::isnan(expected))) << to_string(dtype) << " code " << code;
        }
    }
    EXPECT_THROW(decode_bf16(Dtype::f16, Expr(uint16_t(0))), InternalError);
}

} // namespace
} // namespace scalide
