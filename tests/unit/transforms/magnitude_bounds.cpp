#include "interpret/interpret.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "support.h"
#include "transforms/analysis/passes.h"
#include "transforms/pipeline.h"
#include <cmath>
#include <gtest/gtest.h>
#include <limits>

namespace scalide {

namespace {

Program expanded(const std::string &text) {
    const Program program = simplify(expand(typed(text), rules()), rules());
    verify(program, "expand");
    return program;
}

Array array(Dtype dtype, std::vector<int64_t> shape, std::vector<double> data) { return {dtype, std::move(shape), std::move(data)}; }
Array scalar(double value) { return {Dtype::f32, {}, {value}}; }

/// True when the bound waits for the value `x`.
bool reads_x(const Program &program) { return body(program).find("abs(x)") != std::string::npos; }

} // namespace

TEST(magnitude_bounds, of_an_update_is_known_before_the_update) {
    const Program program =
        expanded("(w: f16[4, 3], s: f32[], a: f8_e4m3fn[4, b], c: f8_e5m2[b, 3], rate: f32[]) -> (x: f32[4, 3], n: f32[]) {\n"
                 "  wide = convert_element_type(w) {dtype: f32}\n  old = mul(wide, s)\n"
                 "  p = convert_element_type(a) {dtype: f32}\n  q = convert_element_type(c) {dtype: f32}\n"
                 "  d = dot_general(p, q) {contract: [[1], [0]], preferred: f32}\n"
                 "  step = mul(rate, d)\n  x = sub(old, step)\n  n = norm_bound(x)\n}");
    EXPECT_FALSE(reads_x(program)) << body(program);
    EXPECT_NE(body(program).find("reduce_max"), std::string::npos) << "of w";
    // 2 * 2 + |-0.5| * (b = 2) * 448 * 57344
    const std::vector<Array> inputs = {array(Dtype::f16, {4, 3}, std::vector<double>(12, -2)), scalar(2),
                                       array(Dtype::f8_e4m3fn, {4, 2}, std::vector<double>(8, 448)),
                                       array(Dtype::f8_e5m2, {2, 3}, std::vector<double>(6, 57344)), scalar(-0.5)};
    const std::vector<Array> outputs = interpret(program, inputs, rules(), Mode::stored);
    EXPECT_EQ(outputs[1].data[0], 4 + 448.0 * 57344);
    for (const double x : outputs[0].data) EXPECT_LE(std::abs(x), outputs[1].data[0]);
}

TEST(magnitude_bounds, of_what_is_no_sum_of_arguments_and_products_are_largest_magnitudes) {
    for (const char *op :
         {"x = mul(a, b)", "x = div(a, b)", "x = sqrt(a)", "c = sqrt(a)\n  x = dot_general(c, b) {contract: [[1], [0]]}", "x = max(a, b)"})
        EXPECT_TRUE(reads_x(
            expanded("(a: f32[3, 3], b: f32[3, 3]) -> (x: f32[3, 3], n: f32[]) {\n  " + std::string(op) + "\n  n = norm_bound(x)\n}")))
            << op;
}

TEST(magnitude_bounds, hold_for_moves_and_quotients_by_a_number) {
    const Program program = expanded("(a: f32[2, 3], s: f32[]) -> (x: f32[3, 2], n: f32[]) {\n  t = transpose(a) {permutation: [1, 0]}\n"
                                     "  u = exp(s)\n  wide = broadcast_in_dim(u) {shape: [3, 2], dims: []}\n  y = add(t, t)\n"
                                     "  x = div(y, wide)\n  n = norm_bound(x)\n}");
    EXPECT_FALSE(reads_x(program)) << body(program);
    const std::vector<Array> outputs =
        interpret(program, {array(Dtype::f32, {2, 3}, {1, -5, 2, 0, 3, 4}), scalar(0)}, rules(), Mode::stored);
    EXPECT_EQ(outputs[1].data[0], 10);
}

TEST(magnitude_bounds, of_a_product_are_zero_where_an_operand_is) {
    const Program program = expanded("(a: f32[2, 4], b: f32[4, 3]) -> (x: f32[2, 3], n: f32[]) {\n"
                                     "  x = dot_general(a, b) {contract: [[1], [0]]}\n  n = norm_bound(x)\n}");
    EXPECT_FALSE(reads_x(program)) << body(program);
    const auto bound = [&](double a, double b) {
        const std::vector<Array> inputs = {array(Dtype::f32, {2, 4}, std::vector<double>(8, a)),
                                           array(Dtype::f32, {4, 3}, std::vector<double>(12, b))};
        return interpret(program, inputs, rules(), Mode::stored)[1].data[0];
    };
    EXPECT_EQ(bound(2, -3), 24);
    EXPECT_EQ(bound(0, -3), 0);
    EXPECT_EQ(bound(2, 0), 0);
}

/// One step of w, whose gradient is a product of x and c, in base operators.
class NewState : public testing::TestWithParam<const char *> {
protected:
    /// What the step makes of 32 rows w, as numbers: a state of fewer than 256 elements keeps its format.
    std::vector<double> made(const std::vector<double> &w, double x, double c, double rate, int rows = 64) {
        std::vector<double> elements(64 * 32, 0);
        std::fill_n(elements.begin(), 32 * rows, x);
        const Program program =
            to_base_operators(parse_program("program p(x: f32[64, 32], c: f32[64, 8], w: f32[32, 8] inout, rate: f32[]) -> (w = u) {\n"
                                            "  d = dot_general(x, c) {contract: [[0], [0]]}\n"
                                            "  r = broadcast_in_dim(rate) {shape: [32, 8], dims: []}\n"
                                            "  s = mul(r, d)\n  u = sub(w, s)\n}",
                                            "p.scl"),
                              rules(), options());
        const double scale = 0x1p-14;
        std::vector<double> codes;
        for (int row = 0; row < 32; row++)
            for (const double element : w) codes.push_back(round_to(Dtype::f16, element / scale));
        const std::map<std::string, Array> known = {{"x", array(Dtype::f32, {64, 32}, elements)},
                                                    {"c", array(Dtype::f32, {64, 8}, std::vector<double>(64 * 8, c))},
                                                    {"w.data", array(Dtype::f16, {32, 8}, codes)},
                                                    {"w.scale", scalar(scale)},
                                                    {"rate", scalar(rate)}};
        std::vector<Array> inputs;
        for (const Argument &argument : program.arguments) {
            const auto found = known.find(program.value_name(argument.value));
            inputs.push_back(found != known.end() ? found->second : Array{program.type(argument.value).dtype, {}, {0}});
        }
        const std::vector<Array> outputs = interpret(program, inputs, rules(), Mode::stored);
        const auto place = [&](const std::string &name) {
            return std::ranges::find(program.results, name, &Result::name) - program.results.begin();
        };
        std::vector<double> values = outputs[place("w.data")].data;
        for (double &value : values) value *= outputs[place("w.scale")].data[0];
        return values;
    }

    CompileOptions options() const {
        CompileOptions options;
        options.policy = load_policy(std::string(SCALIDE_RULES_DIR) + "/policies/" + GetParam() + ".yaml");
        return options;
    }
};

const std::vector<double> weights = {0.5, -0.25, 0.001, 0.0625, 0.75, -0.875, 0.3125, 1e-5};

TEST_P(NewState, keeps_its_bits_where_the_update_is_zero) {
    const std::vector<double> before = made(weights, 0, 0, 0);
    for (const double rate : {0.01, 1.0, 1e6}) {
        EXPECT_EQ(made(weights, 0, 0, rate), before) << "a batch of zeros";
        EXPECT_EQ(made(weights, 3, 0, rate), before) << "a mask of zeros";
        EXPECT_EQ(made(weights, 0, 1e4, rate), before) << "a branch of zeros";
    }
}

TEST_P(NewState, keeps_the_bits_of_old_weights_where_the_bound_is_much_larger) {
    for (const double rate : {1e-6, 1e-3, 0.1}) {
        const std::vector<double> after = made(weights, 1, 0.01, rate);
        for (size_t i = 0; i < 7; i++) EXPECT_NEAR(after[i], weights[i] - rate * 0.64, 2e-3 * std::abs(weights[i]) + 0.1 * rate) << i;
    }
}

TEST_P(NewState, has_room_for_an_update_much_larger_than_the_old_weights) {
    for (const double after : made(std::vector<double>(8, 0), 1, -1, 100)) EXPECT_NEAR(after, 6400, 450) << "no old bits to keep";
    for (const double w : {1e-3, 1e-20})
        for (const double after : made(std::vector<double>(8, w), 1, -1, 100, 4)) EXPECT_NEAR(after, 400, 30) << "1/16 of its bound, " << w;
}

TEST_P(NewState, of_an_infinite_gradient_does_not_lose_the_scale) {
    const std::vector<double> after = made(weights, std::numeric_limits<double>::infinity(), 0, 1);
    for (size_t i = 0; i < 7; i++)
        if (std::isfinite(after[i])) EXPECT_NEAR(after[i], weights[i], 1e-3 * std::abs(weights[i])) << i;
}

INSTANTIATE_TEST_SUITE_P(policies, NewState, testing::Values("f16_scaled", "f8_scaled"));

} // namespace scalide
