#include "lower/math/elementwise.h"
#include "expr/error.h"
#include "ir/evaluation.h"
#include "lower/formats/formats.h"
#include "lower/halide/strict.h"
#include "support/ulp.h"
#include <bit>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <set>

namespace scalide {
namespace {

using Halide::Expr;

const std::vector<double> floats{
    0.0,    -0.0,    1,    -1,    0.5,   -0.5,    1.5,          2.5,           -2.5, 3,        -3,        7,  1e-45,
    -1e-45, 1.1e-38, 3e38, -3e38, 1e-30, 8388609, 2147483648.0, -2147483648.0, -3e9, INFINITY, -INFINITY, NAN};
const std::vector<double> bools{0, 1};
constexpr Dtype integer_dtypes[] = {Dtype::i8, Dtype::u8, Dtype::i16, Dtype::u16, Dtype::i32, Dtype::u32};

std::vector<double> integers(Dtype dtype) {
    const IntegerRange range = range_of(dtype);
    std::vector<double> values{range.smallest, range.largest, range.largest - 1};
    for (double value : {0, 1, -1, 2, -2, 3, -7, 7, 8, 15, 16, 31, 32, 100}) values.push_back(wrap_integer(dtype, value));
    return values;
}

std::vector<double> samples(Dtype dtype) { return is_integer(dtype) ? integers(dtype) : dtype == Dtype::boolean ? bools : floats; }

// Everything as f64, which holds f32, i32 and bool exactly.
Halide::Buffer<double> column(const std::vector<double> &values) {
    Halide::Buffer<double> buffer(static_cast<int>(values.size()));
    std::copy(values.begin(), values.end(), buffer.begin());
    return buffer;
}

Expr from_double(const Expr &x, Dtype dtype) {
    if (dtype == Dtype::boolean) return x != Expr(0.0);
    return Halide::cast(storage_type(dtype), is_integer(dtype) ? x : strict(x));
}

struct Operation {
    std::string op;
    Dtype dtype, result;
    Attributes attributes = {};
};

std::vector<double> run(const Operation &operation, const std::vector<std::vector<double>> &columns) {
    Halide::Var x("x");
    Halide::Func f("f");
    std::vector<ElementwiseOperand> operands;
    for (const auto &values : columns) {
        // In memory, as a kernel finds them: Halide would merge the casts of a float to an integer and on to one of another sign.
        Halide::Func stored;
        stored(x) = from_double(column(values)(x), operation.dtype);
        stored.compute_root();
        operands.push_back({stored(x), operation.dtype});
    }
    f(x) = Halide::cast<double>(lower_elementwise(operation.op, operands, operation.attributes, operation.result));
    f.vectorize(x, 8, Halide::TailStrategy::GuardWithIf);
    Halide::Buffer<double> out = f.realize({static_cast<int>(columns[0].size())});
    return {out.begin(), out.end()};
}

// All pairs (or the values themselves) of the samples, as the dtype holds them.
std::vector<std::vector<double>> arguments(Dtype dtype, int arity) {
    std::vector<std::vector<double>> columns(arity);
    for (double a : samples(dtype)) {
        for (double b : arity == 2 ? samples(dtype) : std::vector<double>{0}) {
            columns[0].push_back(round_to(dtype == Dtype::f32 ? Dtype::f32 : Dtype::f64, a));
            if (arity == 2) columns[1].push_back(round_to(dtype == Dtype::f32 ? Dtype::f32 : Dtype::f64, b));
        }
    }
    return columns;
}

// The f64 definition of the operator, and how far from it f32 may be.
void expect_like_definition(const Operation &operation) {
    SCOPED_TRACE(operation.op + " " + std::string(to_string(operation.dtype)));
    const BaseOperator &base = *find_base_operator(operation.op);
    auto columns = arguments(operation.dtype, base.arity);
    std::vector<double> results = run(operation, columns);
    const Evaluation evaluate(base, operation.dtype, operation.attributes);
    for (size_t i = 0; i < results.size(); i++) {
        std::vector<double> values;
        for (const auto &values_of_operand : columns) values.push_back(values_of_operand[i]);
        values.insert(values.end(), evaluate.further_arguments().begin(), evaluate.further_arguments().end());
        double expected = evaluate(values);
        if (operation.result == Dtype::f32) {
            EXPECT_LE(test::ulp_distance(static_cast<float>(results[i]), expected), 2)
                << values[0] << " " << values.back() << ": " << results[i];
        } else {
            EXPECT_EQ(results[i], is_integer(operation.result) ? wrap_integer(operation.result, expected) : expected)
                << testing::PrintToString(values);
        }
    }
}

TEST(lower, every_elementwise_base_operator_has_a_lowering) {
    std::set<std::string_view> base, lowered;
    for (const BaseOperator &op : base_operators()) {
        if (op.shape == Shape::elementwise) base.insert(op.name);
    }
    for (const ElementwiseLowering &row : elementwise_lowerings()) EXPECT_TRUE(lowered.insert(row.name).second) << row.name;
    EXPECT_EQ(base, lowered);
    EXPECT_THROW(lower_elementwise("dot_general", {}, {}, Dtype::f32), InternalError);
}

TEST(lower, f32_operators_follow_their_definition) {
    for (const char *op : {"add",  "sub",   "mul",  "div",   "rem",   "neg",       "abs",      "sign",         "max",   "min",      "exp",
                           "exp2", "expm1", "log",  "log2",  "log1p", "tanh",      "logistic", "erf",          "sqrt",  "rsqrt",    "sin",
                           "cos",  "floor", "ceil", "round", "pow",   "pow2_down", "pow2_up",  "pow2_nearest", "erfc",  "cbrt",     "tan",
                           "asin", "acos",  "atan", "atan2", "sinh",  "cosh",      "asinh",    "acosh",        "atanh", "nextafter"}) {
        expect_like_definition({op, Dtype::f32, Dtype::f32});
    }
    for (int power : {0, 1, 2, 3, 5, 8, -1, -2, -3}) expect_like_definition({"integer_pow", Dtype::f32, Dtype::f32, {{"y", power}}});
}

// Relative to their value where that is not small: near their zeros they are exact to so much of 1.
TEST(lower, special_functions_follow_their_definition) {
    for (const char *op : {"lgamma", "digamma", "zeta", "igamma", "igammac", "bessel_i0e", "bessel_i1e", "erf_inv"}) {
        SCOPED_TRACE(op);
        const BaseOperator &base = *find_base_operator(op);
        std::vector<std::vector<double>> columns(base.arity);
        for (double a : {0.0,
                         1e-6,
                         0.3,
                         0.75,
                         1.0,
                         1.5,
                         2.0,
                         2.75,
                         4.0,
                         7.9,
                         8.5,
                         15.0,
                         19.0,
                         21.0,
                         30.0,
                         100.0,
                         1000.0,
                         3e4,
                         -0.5,
                         -2.0,
                         -2.5,
                         -7.25,
                         1e5,
                         double(INFINITY),
                         -double(INFINITY),
                         double(NAN)})
            for (double ratio : base.arity == 2 ? std::vector<double>{0, 0.05, 0.5, 0.7, 0.97, 1, 1.03, 1.3, 1.5, 4, 20, INFINITY}
                                                : std::vector<double>{1}) {
                columns[0].push_back(static_cast<float>(a));
                if (base.arity == 2) columns[1].push_back(static_cast<float>(a == 0 ? ratio : a * ratio));
            }
        std::vector<double> results = run({op, Dtype::f32, Dtype::f32}, columns);
        for (size_t i = 0; i < results.size(); i++) {
            std::vector<double> values;
            for (const auto &column : columns) values.push_back(column[i]);
            const double expected = static_cast<float>(base.evaluate(values));
            if ((std::isnan(expected) && std::isnan(results[i])) || expected == results[i]) continue;
            EXPECT_LE(std::fabs(results[i] - expected), 1e-6 * std::max(1e-3, std::fabs(expected))) << values[0] << " " << values.back();
        }
    }
}

TEST(lower, incomplete_beta_follows_its_definition) {
    std::vector<std::vector<double>> columns(3);
    for (double a : {0.0, 0.01, 0.5, 1.0, 3.0, 20.0, 400.0, double(INFINITY), -1.0})
        for (double b : {0.0, 0.01, 0.5, 2.0, 30.0, 300.0, double(INFINITY)})
            for (double x : {0.0, 0.001, 0.3, 0.5, 0.7, 0.99, 1.0, 1.5, -0.5}) {
                columns[0].push_back(static_cast<float>(a));
                columns[1].push_back(static_cast<float>(b));
                columns[2].push_back(static_cast<float>(x));
            }
    std::vector<double> results = run({"regularized_incomplete_beta", Dtype::f32, Dtype::f32}, columns);
    for (size_t i = 0; i < results.size(); i++) {
        const std::vector<double> values{columns[0][i], columns[1][i], columns[2][i]};
        const double expected = static_cast<float>(find_base_operator("regularized_incomplete_beta")->evaluate(values));
        if ((std::isnan(expected) && std::isnan(results[i])) || expected == results[i]) continue;
        EXPECT_LE(std::fabs(results[i] - expected), 1e-6 * std::max(1e-3, std::fabs(expected)))
            << values[0] << " " << values[1] << " " << values[2] << ": " << results[i];
    }
}

TEST(lower, truths_follow_their_definition) {
    expect_like_definition({"is_finite", Dtype::f32, Dtype::boolean});
    for (Dtype dtype : {Dtype::f32, Dtype::i32, Dtype::u32, Dtype::i8, Dtype::boolean}) {
        for (const char *op : {"eq", "ne", "lt", "le", "gt", "ge"}) expect_like_definition({op, dtype, Dtype::boolean});
    }
    for (Dtype dtype : {Dtype::i32, Dtype::boolean}) {
        for (const char *op : {"and", "or", "xor", "not"}) expect_like_definition({op, dtype, dtype});
    }
}

TEST(lower, integer_operators_wrap_around) {
    for (Dtype dtype : integer_dtypes) {
        for (const char *op : {"add", "sub", "mul", "neg", "abs", "sign", "max", "min", "div", "rem", "and", "or", "xor", "not",
                               "shift_left", "shift_right_arithmetic", "shift_right_logical", "population_count", "clz"})
            expect_like_definition({op, dtype, dtype});
        for (int power : {0, 1, 3}) expect_like_definition({"integer_pow", dtype, dtype, {{"y", power}}});
    }
    EXPECT_EQ(run({"mul", Dtype::i32, Dtype::i32}, {{65536, -3, 2147483647}, {65536, 7, 3}}), (std::vector<double>{0, -21, 2147483645}));
    EXPECT_EQ(run({"integer_pow", Dtype::i32, Dtype::i32, {{"y", 3}}}, {{-3, 2, 0}}), (std::vector<double>{-27, 8, 0}));
}

TEST(lower, f64_is_for_scales) {
    std::vector<double> tiny{std::ldexp(1.0, -200)}, three{3};
    EXPECT_EQ(run({"mul", Dtype::f64, Dtype::f64}, {tiny, three}), std::vector<double>{std::ldexp(3.0, -200)});
    EXPECT_EQ(run({"pow2_up", Dtype::f64, Dtype::f64}, {three}), std::vector<double>{4});
    EXPECT_EQ(run({"sqrt", Dtype::f64, Dtype::f64}, {three}), std::vector<double>{std::sqrt(3.0)});
    EXPECT_THROW(run({"exp", Dtype::f64, Dtype::f64}, {three}), InternalError);
}

std::vector<double> convert_all(const std::vector<double> &values, Dtype from, Dtype to) {
    return run({"convert_element_type", from, to}, {values});
}

TEST(lower, converts_as_xla_does) {
    std::vector<double> values{1.9, -1.9, 3e9, -3e9, INFINITY, -INFINITY, NAN, -0.0, 2147483520.0};
    EXPECT_EQ(convert_all(values, Dtype::f32, Dtype::i32),
              (std::vector<double>{1, -1, 2147483647, -2147483648.0, 2147483647, -2147483648.0, 0, 0, 2147483520}));
    EXPECT_EQ(convert_all({2147483646.5, 2147483648.0}, Dtype::f64, Dtype::i32), (std::vector<double>{2147483646, 2147483647}));
    EXPECT_EQ(convert_all(values, Dtype::f32, Dtype::boolean), (std::vector<double>{1, 1, 1, 1, 1, 1, 1, 0, 1}));
    EXPECT_EQ(convert_all(values, Dtype::f32, Dtype::u8), (std::vector<double>{1, 0, 255, 0, 255, 0, 0, 0, 255}));
    EXPECT_EQ(convert_all(values, Dtype::f32, Dtype::u32), (std::vector<double>{1, 0, 3e9, 0, 4294967295.0, 0, 0, 0, 2147483520}));
    EXPECT_EQ(convert_all({-1, 300, 2147483647}, Dtype::i32, Dtype::i8), (std::vector<double>{-1, 44, -1}));
    EXPECT_EQ(convert_all({-1, 300}, Dtype::i32, Dtype::u32), (std::vector<double>{4294967295.0, 300}));
    EXPECT_EQ(convert_all({4294967295.0, 7}, Dtype::u32, Dtype::f32), (std::vector<double>{4294967296.0, 7}));
    EXPECT_EQ(convert_all({0, 1}, Dtype::boolean, Dtype::f32), (std::vector<double>{0, 1}));
    EXPECT_EQ(convert_all({16777217, -16777219}, Dtype::i32, Dtype::f32), (std::vector<double>{16777216, -16777220}));
}

// 1 + 2^-8 + 2^-30 is above the tie between two bf16 values, but f32 would round it onto the tie.
TEST(lower, narrow_results_are_rounded_once) {
    double above_tie = 1 + std::ldexp(1.0, -8) + std::ldexp(1.0, -30);
    for (double value : {above_tie, -above_tie, 1e300, 1e-300, 0.1, 0.0}) {
        uint32_t expected = encode(format_of(Dtype::bf16), value);
        EXPECT_EQ(convert_all({value}, Dtype::f64, Dtype::bf16), std::vector<double>{static_cast<double>(expected)}) << value;
    }
    double integer = (1 << 30) + (1 << 22) + 1;
    EXPECT_EQ(convert_all({integer}, Dtype::i32, Dtype::bf16),
              std::vector<double>{static_cast<double>(encode(format_of(Dtype::bf16), integer))});
}

TEST(lower, selects_the_nearest_case_of_an_index) {
    Halide::Var x("x");
    Halide::Func f("f");
    std::vector<ElementwiseOperand> operands{
        {x - 1, Dtype::i32}, {Expr(10.0f), Dtype::f32}, {Expr(20.0f), Dtype::f32}, {Expr(30.0f), Dtype::f32}};
    f(x) = lower_elementwise("select_n", operands, {}, Dtype::f32);
    Halide::Buffer<float> out = f.realize({6});
    EXPECT_EQ(std::vector<float>(out.begin(), out.end()), (std::vector<float>{10, 10, 20, 30, 30, 30}));
}

} // namespace
} // namespace scalide
