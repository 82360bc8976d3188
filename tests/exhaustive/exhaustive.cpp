#include "exhaustive/code_runs.h"
#include "exhaustive/references.h"
#include "lower/formats/formats.h"
#include "support/pointwise.h"
#include "support/unary_functions.h"
#include <algorithm>
#include <atomic>
#include <gtest/gtest.h>
#include <numeric>
#include <thread>

namespace scalide {
namespace {

using Halide::Expr;
using test::Pointwise;
using Words = std::vector<uint32_t>;

constexpr uint32_t chunk_bits = 16; ///< words and results stay in the cache of a core

// Sums check(words, results) of chunks that together are all 2^32 words, on all cores.
template<typename Check>
uint64_t count_over_all_words(const Pointwise::Body &body, const Check &check) {
    std::atomic<uint32_t> next{0};
    std::atomic<uint64_t> sum{0};
    auto work = [&] {
        Pointwise kernel(body);
        Words words(size_t(1) << chunk_bits), results(words.size());
        for (uint32_t chunk; (chunk = next++) < 1u << (32 - chunk_bits);) {
            std::iota(words.begin(), words.end(), chunk << chunk_bits);
            kernel.run(words, results);
            sum += check(words, results);
        }
    };
    std::vector<std::thread> threads(std::max(1u, std::thread::hardware_concurrency()));
    for (std::thread &thread : threads) thread = std::thread(work);
    for (std::thread &thread : threads) thread.join();
    return sum;
}

class exhaustive_formats : public testing::TestWithParam<Dtype> {};

TEST_P(exhaustive_formats, encode_equals_the_software_codec) {
    const FormatSpec &format = format_of(GetParam());
    for (Overflow overflow : {Overflow::saturate, Overflow::clip, Overflow::format}) {
        const std::vector<test::CodeRun> runs = test::code_runs(format, overflow);
        auto body = [&](const Expr &word) { return encode(format, Halide::reinterpret<float>(word), overflow); };
        const uint64_t wrong = count_over_all_words(body, [&](const Words &words, const Words &codes) {
            thread_local Words expected;
            expected.resize(words.size());
            test::fill_codes(runs, words[0], expected);
            if (codes == expected) return uint64_t(0);
            return uint64_t(
                std::inner_product(codes.begin(), codes.end(), expected.begin(), uint64_t(0), std::plus<>(), std::not_equal_to<>()));
        });
        EXPECT_EQ(wrong, 0u);
    }
}

INSTANTIATE_TEST_SUITE_P(all, exhaustive_formats,
                         testing::Values(Dtype::f16, Dtype::bf16, Dtype::f8_e4m3fn, Dtype::f8_e5m2, Dtype::f8_e4m3fnuz, Dtype::f8_e5m2fnuz,
                                         Dtype::f8_e8m0fnu, Dtype::f8_e3m4, Dtype::f8_e4m3, Dtype::f8_e4m3b11fnuz),
                         [](const auto &info) { return std::string(to_string(info.param)); });

class exhaustive_functions : public testing::TestWithParam<test::UnaryFunction> {};

TEST_P(exhaustive_functions, are_within_2_ulp) {
    const test::UnaryFunction &function = GetParam();
    const test::ArrayReference *reference = test::find_array_reference(function.name);
    auto body = [&](const Expr &word) { return function.lower(Halide::reinterpret<float>(word)); };
    const uint64_t wrong = count_over_all_words(body, [&](const Words &words, const Words &results) {
        thread_local std::vector<double> expected;
        expected.resize(words.size());
        const auto *arguments = reinterpret_cast<const float *>(words.data());
        if (reference) {
            reference->compute(arguments, expected.data(), words.size());
        } else {
            std::transform(arguments, arguments + words.size(), expected.begin(), function.fast_reference);
        }
        return test::count_beyond_2_ulp(reinterpret_cast<const float *>(results.data()), expected.data(), words.size());
    });
    EXPECT_EQ(wrong, 0u);
}

INSTANTIATE_TEST_SUITE_P(all, exhaustive_functions, testing::ValuesIn(test::unary_functions().begin(), test::unary_functions().end()),
                         [](const auto &info) { return std::string(info.param.name); });

} // namespace
} // namespace scalide
