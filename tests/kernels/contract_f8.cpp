#include "kernels/contract_cases.h"
#include <cmath>
#include <gtest/gtest.h>
#include <limits>

// What a product of f8 operands and all that cuBLASLt does besides mean (transforms/library/matmul_call.h), by f64: scales, what is added,
// the largest magnitude before the factor of the result, saturation, in every pair of operands and every dtype of the result.

namespace scalide::contract_test {
namespace {

constexpr Dtype result_dtypes[] = {Dtype::f32, Dtype::f16, Dtype::bf16, Dtype::f8_e4m3fn, Dtype::f8_e5m2};

struct Pair {
    Dtype lhs, rhs;
    friend void PrintTo(const Pair &pair, std::ostream *out) { *out << to_string(pair.lhs) << " by " << to_string(pair.rhs); }
};

/// t = factor * z + addend_factor * addend + bias; amax = max |t|; a result of each dtype: result_factor * t.
struct Inputs {
    int64_t m, n, k;
    Doubles x, y, bias, addend;
    double factor = 1, addend_factor = 1, result_factor = 1;

    Doubles t() const {
        Doubles sums = multiply({1, m, n, k}, x, y);
        for (size_t i = 0; i < sums.size(); i++) sums[i] = factor * sums[i] + addend_factor * addend[i] + bias[i % size_t(n)];
        return sums;
    }
};

class F8 : public testing::TestWithParam<Pair> {
protected:
    F8() : kernel_(parse_program(text(), "k")) {}

    static std::string text() {
        Form form;
        form.lhs_dtype = to_string(GetParam().lhs), form.rhs_dtype = to_string(GetParam().rhs);
        std::string results, lines;
        for (const Dtype dtype : result_dtypes) {
            const std::string name(to_string(dtype));
            if (!results.empty()) results += ", ";
            results += "r_" + name + ": " + name + "[m, n] = " + (dtype == Dtype::f32 ? "scaled" : "r_" + name);
            if (dtype != Dtype::f32) lines += "  r_" + name + " = convert_element_type(scaled) : " + name + "[m, n]\n";
        }
        return "program k {kind: contract} (x: " + form.lhs_type() + ", y: " + form.rhs_type() +
               ", factor: f32[], bias: bf16[n], addend: f16[m, n], addend_factor: f32[], result_factor: f32[]) -> (" + results +
               ", amax: f32[]) {\n" + form.lines() +
               "  wide_factor = broadcast_in_dim(factor) {dims: []} : f32[m, n]\n"
               "  sum = mul(z, wide_factor) : f32[m, n]\n"
               "  addend32 = convert_element_type(addend) : f32[m, n]\n"
               "  wide_addend_factor = broadcast_in_dim(addend_factor) {dims: []} : f32[m, n]\n"
               "  addend_scaled = mul(addend32, wide_addend_factor) : f32[m, n]\n"
               "  with_addend = add(sum, addend_scaled) : f32[m, n]\n"
               "  bias32 = convert_element_type(bias) : f32[n]\n"
               "  wide_bias = broadcast_in_dim(bias32) {dims: [1]} : f32[m, n]\n"
               "  t = add(with_addend, wide_bias) : f32[m, n]\n"
               "  magnitude = abs(t) : f32[m, n]\n"
               "  amax = reduce_max(magnitude) {axes: [0, 1]} : f32[]\n"
               "  wide_result_factor = broadcast_in_dim(result_factor) {dims: []} : f32[m, n]\n"
               "  scaled = mul(t, wide_result_factor) : f32[m, n]\n" +
               lines + "}\n";
    }

    /// The results in the order of result_dtypes, then the largest magnitude.
    std::vector<Doubles> run(const Inputs &in) const {
        std::vector<Words> words = {to_words(in.x, GetParam().lhs),          to_words(in.y, GetParam().rhs),
                                    to_words({in.factor}, Dtype::f32),       to_words(in.bias, Dtype::bf16),
                                    to_words(in.addend, Dtype::f16),         to_words({in.addend_factor}, Dtype::f32),
                                    to_words({in.result_factor}, Dtype::f32)};
        const std::vector<Words> got = kernel_.run(words, {{"m", in.m}, {"n", in.n}, {"k", in.k}});
        std::vector<Doubles> results;
        for (size_t i = 0; i < std::size(result_dtypes); i++) results.push_back(to_doubles(got[i], result_dtypes[i]));
        results.push_back(to_doubles(got.back(), Dtype::f32));
        return results;
    }

    static Inputs small_integers(int64_t m, int64_t n, int64_t k) {
        std::mt19937 random(uint32_t(m * 31 + n));
        return {m,
                n,
                k,
                random_integers(size_t(m * k), 3, random),
                random_integers(size_t(k * n), 3, random),
                random_integers(size_t(n), 3, random),
                random_integers(size_t(m * n), 3, random)};
    }

    /// Exact in f32 before the last rounding.
    void expect_exact(const Inputs &in) const {
        const std::vector<Doubles> got = run(in);
        Doubles t = in.t();
        double amax = 0;
        for (const double value : t) amax = std::max(amax, std::abs(value));
        EXPECT_EQ(got.back()[0], amax) << "before the factor and the rounding of the result";
        for (size_t i = 0; i < std::size(result_dtypes); i++) {
            Doubles expected;
            for (const double value : t) expected.push_back(round_to(result_dtypes[i], in.result_factor * value));
            EXPECT_EQ(got[i], expected) << to_string(result_dtypes[i]);
        }
    }

    void expect_small_integers() const;
    void expect_saturation() const;
    void expect_nan_and_infinity() const;

    const Kernel kernel_;
};

constexpr std::array<int64_t, 3> shapes[] = {{1, 1, 1}, {3, 17, 5}, {16, 64, 32}, {65, 100, 33}, {9, 20, 0}};

void F8::expect_small_integers() const {
    for (const auto &[m, n, k] : shapes) {
        SCOPED_TRACE(std::to_string(m) + " x " + std::to_string(n) + " x " + std::to_string(k));
        Inputs in = small_integers(m, n, k);
        in.factor = 0.25, in.addend_factor = -2, in.result_factor = 0.5;
        expect_exact(in);
    }
}

/// What overflows is the largest number; the largest magnitude is that before.
void F8::expect_saturation() const {
    Inputs in = small_integers(16, 64, 32);
    for (const double factor : {16.0, 4096.0, 0x1p17}) { // past e4m3, f16, e5m2; what is past bf16 is past f32
        in.result_factor = factor;
        expect_exact(in);
        const std::vector<Doubles> got = run(in);
        double largest = 0;
        for (const double value : got[3]) largest = std::max(largest, std::abs(value));
        EXPECT_EQ(largest, 448) << factor;
    }
}

void F8::expect_nan_and_infinity() const {
    Inputs in = small_integers(3, 17, 5);
    const double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
    in.x[0] = nan;
    std::vector<Doubles> got = run(in);
    for (size_t i = 0; i < std::size(result_dtypes); i++)
        for (size_t column = 0; column < 17; column++) {
            EXPECT_TRUE(std::isnan(got[i][column])) << to_string(result_dtypes[i]);
            EXPECT_FALSE(std::isnan(got[i][17 + column]));
        }
    in.x[0] = 1, in.addend.assign(in.addend.size(), 0), in.addend[0] = 3, in.addend_factor = 0x1p127;
    got = run(in);
    EXPECT_EQ(got[0][0], infinity);
    EXPECT_EQ(got[1][0], infinity) << "what is infinite stays so";
    EXPECT_TRUE(std::isnan(got[3][0])) << "e4m3fn has no infinity";
    EXPECT_EQ(got[4][0], infinity);
    EXPECT_EQ(got.back()[0], infinity);
}

} // namespace

/// One test of three: a kernel takes seconds to compile.
TEST_P(F8, small_integers_are_exact_and_saturate) {
    expect_small_integers();
    expect_saturation();
    expect_nan_and_infinity();
}

/// Every finite code, sums that round: within k roundings of f32 of the exact sum, and half a place of the result.
TEST_P(F8, any_codes_are_near_f64) {
    std::mt19937 random(7);
    constexpr int64_t m = 33, n = 40, k = 300;
    const auto draw = [&](size_t count, Dtype dtype) {
        Doubles values(count);
        for (double &value : values) {
            do value = to_doubles({uint8_t(random() % 256)}, dtype)[0];
            while (!std::isfinite(value));
        }
        return values;
    };
    Inputs in{m, n, k, draw(m * k, GetParam().lhs), draw(k * n, GetParam().rhs), Doubles(n, 0.0), Doubles(m * n, 0.0)};
    in.factor = 0x1p-10, in.result_factor = 0x1p-6;
    Inputs magnitudes = in;
    for (double &value : magnitudes.x) value = std::abs(value);
    for (double &value : magnitudes.y) value = std::abs(value);
    const Doubles t = in.t(), sums = magnitudes.t();
    const std::vector<Doubles> got = run(in);
    double amax = 0, slack = 0;
    for (size_t i = 0; i < t.size(); i++) amax = std::max(amax, std::abs(t[i])), slack = std::max(slack, sums[i] * k * 0x1p-24);
    EXPECT_NEAR(got.back()[0], amax, slack);
    for (size_t r = 0; r < std::size(result_dtypes); r++) {
        const Dtype dtype = result_dtypes[r];
        for (size_t i = 0; i < t.size(); i++) {
            const double exact = in.result_factor * t[i], error = in.result_factor * sums[i] * k * 0x1p-24;
            // Rounding is monotonic: the result lies between the rounded ends of what the sum may be.
            EXPECT_GE(got[r][i], round_to(dtype, exact - error)) << to_string(dtype);
            EXPECT_LE(got[r][i], round_to(dtype, exact + error)) << to_string(dtype);
        }
    }
}

INSTANTIATE_TEST_SUITE_P(contract, F8,
                         testing::Values(Pair{Dtype::f8_e4m3fn, Dtype::f8_e4m3fn}, Pair{Dtype::f8_e4m3fn, Dtype::f8_e5m2},
                                         Pair{Dtype::f8_e5m2, Dtype::f8_e4m3fn}),
                         [](const auto &info) {
                             return std::string(to_string(info.param.lhs)) + "_" + std::string(to_string(info.param.rhs));
                         });

} // namespace scalide::contract_test
