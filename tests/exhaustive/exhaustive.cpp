#include "lower/formats.h"
#include "support/pointwise.h"
#include "support/ulp.h"
#include "support/unary_functions.h"
#include <atomic>
#include <bit>
#include <gtest/gtest.h>
#include <numeric>
#include <thread>

namespace scalide {
namespace {

using Halide::Expr;
using test::Pointwise;
using Words = std::vector<uint32_t>;

constexpr uint32_t chunk_bits = 20;

// Calls check(words, results) for chunks that together are all 2^32 words, on all cores.
template<typename Check>
void for_all_words(const Pointwise::Body &body, const Check &check) {
    std::atomic<uint32_t> next{0};
    auto work = [&] {
        Pointwise kernel(body);
        Words words(size_t(1) << chunk_bits);
        for (uint32_t chunk; (chunk = next++) < 1u << (32 - chunk_bits);) {
            std::iota(words.begin(), words.end(), chunk << chunk_bits);
            check(words, kernel(words));
        }
    };
    std::vector<std::thread> threads(std::max(1u, std::thread::hardware_concurrency()));
    for (std::thread &thread : threads) thread = std::thread(work);
    for (std::thread &thread : threads) thread.join();
}

class exhaustive_formats : public testing::TestWithParam<Dtype> {};

TEST_P(exhaustive_formats, encode_equals_the_software_codec) {
    const FormatSpec &format = format_of(GetParam());
    for (Overflow overflow : {Overflow::saturate, Overflow::format}) {
        std::atomic<uint64_t> wrong{0};
        auto body = [&](const Expr &word) { return encode(format, Halide::reinterpret<float>(word), overflow); };
        for_all_words(body, [&](const Words &words, const Words &codes) {
            uint64_t different = 0;
            for (size_t i = 0; i < words.size(); i++) different += codes[i] != encode(format, std::bit_cast<float>(words[i]), overflow);
            wrong += different;
        });
        EXPECT_EQ(wrong, 0u);
    }
}

INSTANTIATE_TEST_SUITE_P(all, exhaustive_formats,
                         testing::Values(Dtype::f16, Dtype::bf16, Dtype::f8_e4m3fn, Dtype::f8_e5m2, Dtype::f8_e4m3fnuz, Dtype::f8_e5m2fnuz,
                                         Dtype::f8_e8m0fnu),
                         [](const auto &info) { return std::string(to_string(info.param)); });

class exhaustive_functions : public testing::TestWithParam<test::UnaryFunction> {};

TEST_P(exhaustive_functions, are_within_2_ulp) {
    const test::UnaryFunction &function = GetParam();
    std::atomic<uint64_t> wrong{0};
    auto body = [&](const Expr &word) { return function.lower(Halide::reinterpret<float>(word)); };
    for_all_words(body, [&](const Words &words, const Words &results) {
        uint64_t different = 0;
        for (size_t i = 0; i < words.size(); i++) {
            double reference = function.fast_reference(std::bit_cast<float>(words[i]));
            different += !(test::ulp_distance(std::bit_cast<float>(results[i]), reference) <= 2);
        }
        wrong += different;
    });
    EXPECT_EQ(wrong, 0u);
}

INSTANTIATE_TEST_SUITE_P(all, exhaustive_functions, testing::ValuesIn(test::unary_functions().begin(), test::unary_functions().end()),
                         [](const auto &info) { return std::string(info.param.name); });

} // namespace
} // namespace scalide
