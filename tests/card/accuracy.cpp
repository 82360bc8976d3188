#include "card/card.h"
#include <cmath>
#include <gtest/gtest.h>
#include <random>

// card.accuracy.*: products of random numbers on the card beside sums in f64. cuBLASLt does not say how it adds; what is known of the
// hardware: f8 sums of sm_89 and sm_90 keep 14 bits and move to f32 every 128 products, others keep 24 bits or more, truncated.

namespace scalide {

namespace {

struct Case {
    Dtype lhs, rhs, out;
    int64_t k;
    bool all_positive;
};

constexpr int64_t side = 64;

std::string name_of(const testing::TestParamInfo<Case> &info) {
    const Case &p = info.param;
    return std::string(to_string(p.lhs)) + "_" + std::string(to_string(p.rhs)) + "_" + std::string(to_string(p.out)) + "_" +
           std::to_string(p.k) + (p.all_positive ? "_positive" : "");
}

std::vector<Case> cases() {
    using enum Dtype;
    std::vector<Case> all;
    for (const auto &[lhs, rhs, out] :
         {std::tuple(f32, f32, f32), std::tuple(f16, f16, f32), std::tuple(f16, f16, f16), std::tuple(bf16, bf16, f32),
          std::tuple(bf16, bf16, bf16), std::tuple(f8_e4m3fn, f8_e4m3fn, f32), std::tuple(f8_e4m3fn, f8_e4m3fn, bf16),
          std::tuple(f8_e4m3fn, f8_e5m2, bf16), std::tuple(f8_e5m2, f8_e4m3fn, bf16)})
        for (const int64_t k : {128, 4096, 16384})
            for (const bool all_positive : {false, true}) all.push_back({lhs, rhs, out, k, all_positive});
    return all;
}

/// About normal with deviation 1 / 8, so that f16 holds the sums.
HostArray random_matrix(const std::string &name, Dtype dtype, int64_t k, bool all_positive, unsigned seed) {
    std::mt19937 draw(seed);
    std::normal_distribution<double> normal(0, 0.125);
    Array array{dtype, {side, k}, {}};
    for (int64_t i = 0; i < side * k; i++) {
        const double value = normal(draw);
        array.data.push_back(all_positive ? std::fabs(value) : value);
    }
    return to_array(name, array);
}

std::string program_of(const Case &p) {
    const auto matrix = [&](Dtype dtype, int64_t columns) {
        return std::string(to_string(dtype)) + "[" + std::to_string(side) + ", " + std::to_string(columns) + "]";
    };
    return "program product(x: " + matrix(p.lhs, p.k) + ", w: " + matrix(p.rhs, p.k) + ") -> (y: " + matrix(p.out, side) + ") {\n" +
           " a = convert_element_type(x) {dtype: f32}\n b = convert_element_type(w) {dtype: f32}\n" +
           " sums = dot_general(a, b) {contract: [[1], [1]]}\n y = convert_element_type(sums) {dtype: " + std::string(to_string(p.out)) +
           "}\n}\n";
}

/// Of the sum of magnitudes. f8: the model of the hardware (2^-13 truncated in each of four steps of a block, at most 1.3e-3 measured of it
/// over 4000 sums) with room; f32 operands add K roundings; others truncate once in 16 products.
double error_of_sums(const Case &p) {
    if (size_of(p.lhs) == 1) return 2e-3;
    return static_cast<double>(size_of(p.lhs) == 2 ? p.k / 16 + 1 : p.k) * std::exp2(-23);
}

class accuracy : public testing::TestWithParam<Case> {};

} // namespace

TEST_P(accuracy, of_random_numbers) {
    if (!why_no_card().empty()) GTEST_SKIP() << why_no_card();
    const Case &p = GetParam();
    const HostArray x = random_matrix("x", p.lhs, p.k, p.all_positive, 1), w = random_matrix("w", p.rhs, p.k, p.all_positive, 2);
    const auto program = compile_for_card(program_of(p));
    const std::vector<HostArray> results = program->loaded().run([&](const std::string &name) { return name == "x" ? x : w; });
    const Array a = to_tensor(x), b = to_tensor(w), y = to_tensor(results.at(0));
    for (int64_t row = 0; row < side; row++) {
        for (int64_t column = 0; column < side; column++) {
            double sum = 0, magnitudes = 0;
            for (int64_t k = 0; k < p.k; k++) {
                const double term = a.data[static_cast<size_t>(row * p.k + k)] * b.data[static_cast<size_t>(column * p.k + k)];
                sum += term, magnitudes += std::fabs(term);
            }
            const double wrong_by = error_of_sums(p) * magnitudes;
            // Rounding keeps order: what is stored lies between the ends, rounded.
            const double got = y.data[static_cast<size_t>(row * side + column)];
            ASSERT_GE(got, round_to(p.out, sum - wrong_by)) << row << ", " << column;
            ASSERT_LE(got, round_to(p.out, sum + wrong_by)) << row << ", " << column;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(, accuracy, testing::ValuesIn(cases()), name_of);

} // namespace scalide
