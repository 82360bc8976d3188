#include "ir/evaluation.h"
#include "lower/formats/formats.h"
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
    int smallest_exponent; ///< of a normal number
    Attributes attributes() const { return {{accuracy_attribute, std::string(to_string(dtype))}}; }
};

constexpr Storage storages[] = {{Dtype::bf16, -126}, {Dtype::f16, -14}};

constexpr const char *names[] = {"exp", "exp2", "logistic", "tanh", "erf", "erfc"};

/// The distance of a stored value to the exact result in units of its format. An infinity counts as the next power of two.
double distance(const Storage &storage, double stored, long double exact) {
    if (std::isnan(stored) || std::isnan(exact)) return std::isnan(stored) && std::isnan(exact) ? 0 : INFINITY;
    if (stored == 0 && exact == 0) return std::signbit(stored) == std::signbit(exact) ? 0 : INFINITY;
    const long double limit = std::ldexp(1.0L, storage.dtype == Dtype::f16 ? 16 : 128);
    const long double value = std::clamp<long double>(stored, -limit, limit), right = std::clamp(exact, -limit, limit);
    const int exponent = right == 0 ? storage.smallest_exponent : std::max(std::ilogb(right), storage.smallest_exponent);
    return static_cast<double>(std::fabs(std::ldexp(value - right, format_of(storage.dtype).mantissa_bits - exponent)));
}

Expr reduced(const char *op, const Expr &x, const Storage &storage) {
    const ElementwiseOperand operands[] = {{x, Dtype::f32}};
    return lower_elementwise(op, operands, storage.attributes(), Dtype::f32);
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
        for (const char *name : names) {
            const auto functions = test::unary_functions();
            const auto function = std::ranges::find(functions, std::string_view(name), &test::UnaryFunction::name);
            const double worst = worst_of_all_codes(
                storage, [&](const Expr &x) { return reduced(name, x, storage); }, function->reference);
            RecordProperty(std::string(name) + "_" + std::string(to_string(storage.dtype)), std::to_string(worst));
            EXPECT_LE(worst, 0.55) << name << " in " << to_string(storage.dtype);
        }
    }
}

// The tail of gelu is where an absolute error of erf would be visible. The argument of erfc is rounded to f32 first.
TEST(lower, gelu_of_reduced_erfc_is_exact_to_its_format) {
    for (const Storage &storage : storages) {
        auto body = [&](const Expr &x) {
            return x * (Expr(0.5f) * reduced("erfc", -x / Expr(static_cast<float>(std::sqrt(2.0))), storage));
        };
        auto reference = [](long double x) {
            if (std::isinf(x)) return x > 0 ? x : std::nanl("");
            return x * std::erfc(-x / std::sqrt(2.0L)) / 2;
        };
        EXPECT_LE(worst_of_all_codes(storage, body, reference), 0.55) << to_string(storage.dtype);
    }
}

// Otherwise the interpreter would round about one of 30 numbers to the other neighbour. FMAs may differ where a target has none.
TEST(lower, the_interpreter_computes_reduced_functions_as_kernels_do) {
    for (const Storage &storage : storages) {
        for (const char *name : names) {
            Pointwise kernel([&](const Expr &word) {
                return Halide::reinterpret<uint32_t>(reduced(name, decode(storage.dtype, Halide::cast<uint16_t>(word)), storage));
            });
            std::vector<uint32_t> codes(65536);
            for (uint32_t code = 0; code < codes.size(); code++) codes[code] = code;
            const std::vector<uint32_t> results = kernel(codes);
            const Evaluation evaluate(base_operator(name), Dtype::f32, storage.attributes());
            size_t different = 0;
            for (const uint32_t code : codes) {
                std::vector<double> arguments{decode(format_of(storage.dtype), code)};
                arguments.insert(arguments.end(), evaluate.further_arguments().begin(), evaluate.further_arguments().end());
                const auto expected = static_cast<float>(evaluate(arguments)), got = std::bit_cast<float>(results[code]);
                different += expected != got && !(std::isnan(expected) && std::isnan(got));
            }
            EXPECT_EQ(different, 0u) << name << " in " << to_string(storage.dtype);
        }
    }
}

} // namespace
} // namespace scalide
