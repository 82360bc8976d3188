#include "interpret/interpret.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "support.h"
#include "transforms/passes.h"
#include <gtest/gtest.h>

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
         {"x = mul(a, b)", "x = div(a, b)", "x = sqrt(a)", "x = dot_general(a, b) {contract: [[1], [0]]}", "x = max(a, b)"})
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

} // namespace scalide
