#include "ir/text.h"
#include "lower/formats/formats.h"
#include "lower/math/arithmetic_choice.h"
#include "lower/math/elementwise.h"
#include "support/pointwise.h"
#include "support/unary_functions.h"
#include <algorithm>
#include <bit>
#include <cmath>
#include <gtest/gtest.h>

namespace scalide {
namespace {

using Halide::Expr;
using test::Pointwise;

struct Storage {
    Dtype dtype;
    Arithmetic arithmetic;
    int smallest_exponent; ///< of a normal number
};

constexpr Storage storages[] = {{Dtype::bf16, Arithmetic::of_8_bits, -126}, {Dtype::f16, Arithmetic::of_11_bits, -14}};

/// The distance of a stored value to the exact result in units of its format. An infinity counts as the next power of two.
double distance(const Storage &storage, double stored, long double exact) {
    if (std::isnan(stored) || std::isnan(exact)) return std::isnan(stored) && std::isnan(exact) ? 0 : INFINITY;
    if (stored == 0 && exact == 0) return std::signbit(stored) == std::signbit(exact) ? 0 : INFINITY;
    const long double limit = std::ldexp(1.0L, storage.dtype == Dtype::f16 ? 16 : 128);
    const long double value = std::clamp<long double>(stored, -limit, limit), right = std::clamp(exact, -limit, limit);
    const int exponent = right == 0 ? storage.smallest_exponent : std::max(std::ilogb(right), storage.smallest_exponent);
    return static_cast<double>(std::fabs(std::ldexp(value - right, format_of(storage.dtype).mantissa_bits - exponent)));
}

Expr reduced(const char *op, const Expr &x, Arithmetic arithmetic) {
    const ElementwiseOperand operands[] = {{x, Dtype::f32}};
    return lower_elementwise(op, operands, {}, Dtype::f32, arithmetic);
}

/// Applies a function to all codes of a format, stores its results in the format, and returns the largest distance.
double worst_of_all_codes(const Storage &storage, const std::function<Expr(const Expr &)> &body,
                          const std::function<long double(long double)> &reference) {
    const FormatSpec &format = format_of(storage.dtype);
    Pointwise kernel([&](const Expr &word) {
        const Expr x = decode(storage.dtype, Halide::cast<uint16_t>(word));
        return Halide::cast<uint32_t>(encode(format, body(x), Overflow::format));
    });
    std::vector<uint32_t> codes(65536);
    for (uint32_t code = 0; code < codes.size(); code++) codes[code] = code;
    const std::vector<uint32_t> results = kernel(codes);
    double worst = 0;
    for (uint32_t code : codes) worst = std::max(worst, distance(storage, decode(format, results[code]), reference(decode(format, code))));
    return worst;
}

TEST(lower, reduced_functions_are_exact_to_their_format) {
    for (const Storage &storage : storages) {
        for (const char *name : {"exp", "exp2", "logistic", "tanh", "erf", "erfc"}) {
            const auto functions = test::unary_functions();
            const auto function = std::ranges::find(functions, std::string_view(name), &test::UnaryFunction::name);
            const double worst = worst_of_all_codes(
                storage, [&](const Expr &x) { return reduced(name, x, storage.arithmetic); }, function->reference);
            RecordProperty(std::string(name) + "_" + std::string(to_string(storage.dtype)), std::to_string(worst));
            EXPECT_LE(worst, 0.55) << name << " in " << to_string(storage.dtype);
        }
    }
}

// The tail of gelu is where an absolute error of erf would be visible. The argument of erfc is rounded to f32 first.
TEST(lower, gelu_of_reduced_erfc_is_exact_to_its_format) {
    for (const Storage &storage : storages) {
        auto body = [&](const Expr &x) {
            return x * (Expr(0.5f) * reduced("erfc", -x / Expr(static_cast<float>(std::sqrt(2.0))), storage.arithmetic));
        };
        auto reference = [](long double x) {
            if (std::isinf(x)) return x > 0 ? x : std::nanl("");
            return x * std::erfc(-x / std::sqrt(2.0L)) / 2;
        };
        EXPECT_LE(worst_of_all_codes(storage, body, reference), 0.55) << to_string(storage.dtype);
    }
}

/// Returns how the first exp of a kernel is computed.
Arithmetic arithmetic_of_exp(const std::string &body) {
    const Program kernel = parse_program(body, "reduced.scl");
    const auto exp = std::ranges::find(kernel.nodes, "exp", &Node::op);
    return choose_reduced_arithmetic(kernel)[exp->results[0]];
}

TEST(lower, reduced_functions_are_chosen_by_all_their_readers) {
    const std::string bf16 = "program p(x: f32[8]) -> (y: bf16[8]) {\n e = exp(x)\n",
                      to_bf16 = " y = convert_element_type(m) {dtype: bf16}\n}";
    EXPECT_EQ(arithmetic_of_exp(bf16 + " m = mul(e, x)\n" + to_bf16), Arithmetic::of_8_bits);
    EXPECT_EQ(arithmetic_of_exp("program p(x: f32[8]) -> (y: f16[8]) {\n e = exp(x)\n y = convert_element_type(e) {dtype: f16}\n}"),
              Arithmetic::of_11_bits);
    EXPECT_EQ(arithmetic_of_exp(bf16 + " m = sub(e, x)\n" + to_bf16), Arithmetic::exact) << "a sum may cancel";
    EXPECT_EQ(
        arithmetic_of_exp("program p(x: f32[8]) -> (y: bf16[8], e: f32[8]) {\n e = exp(x)\n y = convert_element_type(e) {dtype: bf16}\n}"),
        Arithmetic::exact)
        << "the value is stored in f32 too";
}

} // namespace
} // namespace scalide
