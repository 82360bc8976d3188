#include "ir/dtype.h"
#include "support/pointwise.h"
#include "support/ulp.h"
#include "support/unary_functions.h"
#include <bit>
#include <cmath>
#include <gtest/gtest.h>
#include <random>

namespace scalide {
namespace {

using Halide::Expr;
using test::Pointwise;
using test::ulp_distance;
using Words = std::vector<uint32_t>;

constexpr uint32_t seed = 20261121;

float to_float(uint32_t word) { return std::bit_cast<float>(word); }

// All f16 and all bf16 values, then 2^22 random bit patterns.
Words arguments() {
    Words words;
    for (uint32_t code = 0; code < 65536; code++) {
        words.push_back(code << 16);
        words.push_back(std::bit_cast<uint32_t>(static_cast<float>(decode(format_of(Dtype::f16), code))));
    }
    std::mt19937 random(seed);
    for (int i = 0; i < 1 << 22; i++) words.push_back(random());
    return words;
}

TEST(lower, functions_are_within_2_ulp) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Words words = arguments();
    for (const test::UnaryFunction &function : test::unary_functions()) {
        Pointwise kernel([&](const Expr &word) { return function.lower(Halide::reinterpret<float>(word)); });
        Words results = kernel(words);
        double worst = 0;
        float where = 0;
        for (size_t i = 0; i < words.size(); i++) {
            double distance = ulp_distance(to_float(results[i]), function.reference(to_float(words[i])));
            if (distance > worst) worst = distance, where = to_float(words[i]);
        }
        RecordProperty(function.name, std::to_string(worst));
        EXPECT_LE(worst, 2) << function.name << " at " << where;
    }
}

TEST(lower, log2_of_powers_of_two_is_exact) {
    Words words;
    for (int exponent = -149; exponent < 128; exponent++) words.push_back(std::bit_cast<uint32_t>(std::ldexp(1.0f, exponent)));
    Pointwise kernel([](const Expr &word) { return math::log2(Halide::reinterpret<float>(word)); });
    Words results = kernel(words);
    for (size_t i = 0; i < words.size(); i++) EXPECT_EQ(to_float(results[i]), static_cast<float>(i) - 149);
}

// A select between a result and its argument is where LLVM merged bits wrongly (see with_sign_of in lower/halide/strict.cpp).
TEST(lower, results_selected_against_their_argument) {
    Words words = arguments();
    words.resize(1 << 17);
    for (const test::UnaryFunction &function : test::unary_functions()) {
        Pointwise alone([&](const Expr &word) { return function.lower(Halide::reinterpret<float>(word)); });
        Pointwise merged([&](const Expr &word) {
            Expr x = Halide::reinterpret<float>(word);
            return Halide::select((word & 1) == 0, x, function.lower(x));
        });
        Words results = alone(words), selected = merged(words);
        for (size_t i = 0; i < words.size(); i++) {
            uint32_t expected = words[i] % 2 == 0 ? words[i] : results[i];
            if (std::isnan(to_float(expected)) && std::isnan(to_float(selected[i]))) continue;
            ASSERT_EQ(selected[i], expected) << function.name << " at " << to_float(words[i]);
        }
    }
}

} // namespace
} // namespace scalide
