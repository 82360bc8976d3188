#include "emit/device_functions.h"
#include "support/ptx/machine.h"
#include "support/ulp.h"
#include <bit>
#include <gtest/gtest.h>
#include <random>

// device.functions.*: the PTX of f32 functions (emit/device_functions.cpp) on the PTX emulator, beside the exact functions. The approximate
// instructions are taken as exact, and with the largest errors of both signs that NVIDIA's manual allows.

namespace scalide {
namespace {

using Reference = long double (*)(long double);

struct Function {
    const char *name;
    DeviceOp op;
    Reference reference;
    double most_ulp;                ///< with the largest errors of the instructions
    double relative = 0;            ///< if not 0: the largest relative error, instead of most_ulp
    float first = -120, last = 120; ///< arguments with uniform bits are taken, and arguments in this range
};

void PrintTo(const Function &function, std::ostream *out) { *out << function.name; }

long double logistic(long double x) { return 1 / (1 + std::exp(-x)); }

const Function functions[] = {
    {"exp", DeviceOp::exp, std::exp, 4.5},
    {"exp_rounded", DeviceOp::exp_rounded, std::exp, 0, 0x1p-16},
    {"exp2", DeviceOp::exp2, std::exp2, 4},
    {"expm1", DeviceOp::expm1, std::expm1, 1.5},
    {"logistic", DeviceOp::logistic, logistic, 3.5},
    {"logistic_rounded", DeviceOp::logistic_rounded, logistic, 0, 0x1p-17},
    {"tanh", DeviceOp::tanh, std::tanh, 2, 0, -12, 12},
    {"tanh_stored", DeviceOp::tanh_stored, std::tanh, 0, 0x1p-10, -12, 12},
    {"erf", DeviceOp::erf, std::erf, 1.5, 0, -5, 5},
    {"erfc", DeviceOp::erfc, std::erfc, 6, 0, -5, 11},
    {"log", DeviceOp::log, std::log, 1, 0, 0, 4},
    {"log2", DeviceOp::log2, std::log2, 1.5, 0, 0, 4},
    {"sqrt", DeviceOp::sqrt, std::sqrt, 3, 0, 0, 100},
    {"rsqrt", DeviceOp::rsqrt, [](long double x) { return 1 / std::sqrt(x); }, 3, 0, 0, 100},
};

const std::string &text_of(DeviceOp op) { return std::ranges::find(device_functions(), op, &DeviceFunction::op)->sm_89; }

/// Applies a function to the bits of numbers.
std::vector<uint32_t> run(DeviceOp op, std::vector<uint32_t> words) {
    constexpr uint32_t threads = 128;
    const size_t count = words.size();
    words.resize((count + threads - 1) / threads * threads);
    const ptx::Module module(
        ".version 8.1\n.target sm_89\n.address_size 64\n.extern .shared .align 16 .b8 block_memory[];\n"
        ".visible .entry k(.param .u64 array)\n{\n"
        "mov.u32 %r0, %tid.x; mad.lo.s32 %r0, %ctaid.x, 128, %r0; ld.param.u64 %a, [array]; mad.wide.u32 %a, %r0, 4, %a;\n"
        "ld.global.b32 %r0, [%a];\n" +
        with_registers(text_of(op), "%r1", "%r0") + "\nst.global.b32 [%a], %r1; ret;\n}\n");
    void *address = words.data();
    void *arguments[] = {&address};
    ptx::Module::run(*module.find("k"), {{static_cast<uint32_t>(words.size() / threads), 1, 1}, {threads, 1, 1}, 0}, arguments,
                     [](uint64_t, size_t) {});
    words.resize(count);
    return words;
}

std::vector<uint32_t> arguments_of(const Function &function) {
    std::mt19937 draw(1);
    std::uniform_real_distribution<float> within(function.first, function.last), near_1(0.9f, 1.1f);
    std::vector<uint32_t> words = {0,          0x80000000u, 1,          0x80000001u, 0x7fffff,   0x800000,   0x7f7fffff, 0xff7fffff,
                                   0x7f800000, 0xff800000,  0x7fc00000, 0xffc00000,  0x7f800001, 0x3f800000, 0xbf800000};
    for (int i = 0; i < 4000; i++) words.push_back(uint32_t(draw()));
    for (int i = 0; i < 12000; i++) words.push_back(std::bit_cast<uint32_t>(within(draw)));
    for (int i = 0; i < 2000; i++) words.push_back(std::bit_cast<uint32_t>(near_1(draw)));
    for (const float middle : {88.7f, -87.4f, -103.9f, 0.6f, 1.0f, 17.0f, 126.0f, -126.0f, -149.0f})
        for (int i = -100; i < 100; i++) words.push_back(std::bit_cast<uint32_t>(middle + float(i) * 0.003f));
    return words;
}

/// In units in the last place, or relative. A number that is as near as f32 permits has no relative error.
double error_of(const Function &function, float got, long double exact) {
    const double ulp = test::ulp_distance(got, exact);
    if (function.relative == 0 || !std::isfinite(ulp)) return ulp;
    return ulp <= 1 ? 0 : static_cast<double>(std::fabs((static_cast<long double>(got) - exact) / exact));
}

class functions_on_device : public testing::TestWithParam<Function> {
protected:
    void TearDown() override { ptx::set_share_of_errors(0); }
};

TEST_P(functions_on_device, are_within_their_errors) {
    const Function &function = GetParam();
    const std::vector<uint32_t> words = arguments_of(function);
    for (const double share : {0.0, 1.0, -1.0}) {
        ptx::set_share_of_errors(share);
        const std::vector<uint32_t> results = run(function.op, words);
        double worst = 0;
        for (size_t i = 0; i < words.size(); i++) {
            const auto x = std::bit_cast<float>(words[i]), got = std::bit_cast<float>(results[i]);
            const double error = error_of(function, got, function.reference(x));
            ASSERT_LE(error, function.relative == 0 ? function.most_ulp : function.relative) << x << " gives " << got;
            worst = std::max(worst, error);
        }
        RecordProperty("worst_at_share_" + std::to_string(int(share)), std::to_string(worst));
    }
}

INSTANTIATE_TEST_SUITE_P(, functions_on_device, testing::ValuesIn(functions), [](const auto &info) { return info.param.name; });

/// Scales make the reciprocal of each divisor a normal number, so a quotient is right for all divisors.
TEST(device_functions, quotients_have_no_gaps) {
    const float numbers[] = {0x1p-149f,  0x1p-140f,       0x1.8p-127f, 0x1p-126f, 0x1p-60f, 1,         3,   0x1p100f, 0x1p125f,
                             0x1.8p126f, 0x1.fffffep127f, 0,           -0.0f,     INFINITY, -INFINITY, NAN, -7};
    std::vector<uint32_t> divisors, scaled;
    for (const float b : numbers) divisors.push_back(std::bit_cast<uint32_t>(b));
    const std::vector<uint32_t> scales = run(DeviceOp::divisor_scale, divisors);
    for (size_t i = 0; i < divisors.size(); i++) scaled.push_back(std::bit_cast<uint32_t>(numbers[i] * std::bit_cast<float>(scales[i])));
    const std::vector<uint32_t> inverses = run(DeviceOp::reciprocal, scaled);
    for (const float a : numbers)
        for (size_t i = 0; i < divisors.size(); i++) {
            const float got = a * std::bit_cast<float>(scales[i]) * std::bit_cast<float>(inverses[i]);
            EXPECT_LE(test::ulp_distance(got, static_cast<long double>(a) / static_cast<long double>(numbers[i])), 2)
                << a << " / " << numbers[i];
        }
}

TEST(device_functions, logarithms_of_powers_of_two_are_exact) {
    std::vector<uint32_t> powers;
    for (int n = -149; n < 128; n++) powers.push_back(std::bit_cast<uint32_t>(std::ldexp(1.0f, n)));
    const std::vector<uint32_t> results = run(DeviceOp::log2, powers);
    for (int n = -149; n < 128; n++) EXPECT_EQ(std::bit_cast<float>(results[size_t(n + 149)]), float(n));
}

} // namespace
} // namespace scalide
