#include "interpret/interpret.h"
#include "rulebook/builder.h"
#include "support.h"
#include "transforms/analysis/passes.h"
#include <cmath>
#include <gtest/gtest.h>

// Gradients where several elements meet at one place, or zeros among factors. Expected values are those of JAX 0.10.2 where it has them.

namespace scalide {

namespace {

using Numbers = std::vector<double>;

/// The gradients of sum(c * y) by the float arguments of a program that makes y from them, c counting 1, 2, 3 ...
std::vector<Numbers> gradients(const std::string &text, const std::vector<Array> &inputs) {
    Program program = typed(text);
    Builder builder(rules(), program);
    const ValueId y = program.results[0].value;
    const Type type = builder.type(y);
    const ValueId counted = builder.add_one("iota", {}, {{"dtype", "f32"}, {"shape", to_attribute(type.shape)}, {"dimension", 0}});
    const ValueId one = builder.broadcast(builder.constant(1), type.shape);
    const ValueId product = builder.add_one("mul", {y, builder.add_one("add", {counted, one})});
    const ValueId loss = builder.add_one("reduce_sum", {product}, {{"axes", to_attribute(std::vector<int64_t>{0})}});
    std::vector<ValueId> wrt;
    for (const Argument &argument : program.arguments)
        if (is_float(program.type(argument.value).dtype)) wrt.push_back(argument.value);
    const std::vector<ValueId> found = append_gradient(program, rules(), loss, wrt);
    program.results.clear();
    for (const ValueId value : found) program.results.push_back({program.value_name(value), value});
    std::vector<Numbers> numbers;
    for (const Array &array : interpret(program, inputs, rules(), Mode::real)) numbers.push_back(array.data);
    return numbers;
}

Array floats(const Numbers &values) { return {Dtype::f32, {static_cast<int64_t>(values.size())}, values}; }
Array places(const Numbers &values) { return {Dtype::i32, {static_cast<int64_t>(values.size()), 1}, values}; }

const std::string scattered = "(x: f32[3], i: i32[3, 1], u: f32[3]) -> (y: f32[3]) {\n y = ";
const std::string numbers = "(x, i, u) {update_window_dims: [], inserted_window_dims: [0], scatter_dims_to_operand_dims: [0]}\n}";

} // namespace

TEST(transforms, gradient_of_cumprod_with_zeros) {
    EXPECT_EQ(gradients("(x: f32[5]) -> (y: f32[5]) {\n y = cumprod(x) {axis: 0}\n}", {floats({2, 0, 3, 0, 4})})[0],
              (Numbers{1, 22, 0, 0, 0}));
}

TEST(transforms, gradient_of_cummax_goes_to_the_nearest_of_equal_elements) {
    EXPECT_EQ(gradients("(x: f32[4]) -> (y: f32[4]) {\n y = cummax(x) {axis: 0}\n}", {floats({1, 3, 3, 2})})[0], (Numbers{1, 2, 7, 0}));
    EXPECT_EQ(gradients("(x: f32[4]) -> (y: f32[4]) {\n y = cummin(x) {axis: 0, reverse: true}\n}", {floats({1, 3, 3, 2})})[0],
              (Numbers{1, 0, 0, 9}));
}

TEST(transforms, gradient_of_cumlogsumexp_with_negative_cotangents) {
    // in JAX: grad of cumlogsumexp(x) . [1, 2, 3, 4]
    const Numbers found = gradients("(x: f32[2]) -> (y: f32[2]) {\n y = cumlogsumexp(x) {axis: 0}\n}", {floats({0, 200})})[0];
    EXPECT_NEAR(found[0], 1, 1e-12);
    EXPECT_NEAR(found[1], 2, 1e-12);
}

TEST(transforms, gradient_of_scatter_goes_to_the_last_update_of_a_place) {
    const std::vector<Numbers> found =
        gradients(scattered + "scatter" + numbers, {floats({5, 6, 7}), places({1, 1, 0}), floats({1, 2, 3})});
    EXPECT_EQ(found[0], (Numbers{0, 0, 3}));
    EXPECT_EQ(found[1], (Numbers{0, 2, 1}));
}

TEST(transforms, gradient_of_scatter_mul_with_zeros_and_several_updates_of_a_place) {
    const std::vector<Numbers> found =
        gradients(scattered + "scatter_mul" + numbers, {floats({2, 5, 3}), places({0, 0, 1}), floats({2, 3, 0})});
    EXPECT_EQ(found[0], (Numbers{6, 0, 3}));
    EXPECT_EQ(found[1], (Numbers{6, 4, 10}));
}

TEST(transforms, gradient_of_scatter_max_is_shared_at_ties) {
    const std::vector<Numbers> found =
        gradients(scattered + "scatter_max" + numbers, {floats({2, 5, 3}), places({0, 0, 1}), floats({2, 2, 7})});
    EXPECT_EQ(found[0], (Numbers{1.0 / 3, 0, 3}));
    EXPECT_EQ(found[1], (Numbers{1.0 / 3, 1.0 / 3, 2}));
}

TEST(transforms, gradient_of_gather_is_zero_where_it_filled) {
    EXPECT_EQ(gradients("(x: f32[3], i: i32[4]) -> (y: f32[4]) {\n y = take(x, i) {axis: 0, fill_value: 0}\n}",
                        {floats({5, 6, 7}), {Dtype::i32, {4}, {2, 2, -4, 0}}})[0],
              (Numbers{4, 0, 3}));
}

TEST(transforms, gradient_of_sort_follows_the_order) {
    const std::vector<Numbers> found =
        gradients("(k: f32[3], v: f32[3]) -> (y: f32[3]) {\n s, t = sort(k, v) {dimension: 0}\n y = mul(s, t)\n}",
                  {floats({3, 1, 2}), floats({4, 5, 6})});
    EXPECT_EQ(found[0], (Numbers{12, 5, 12}));
    EXPECT_EQ(found[1], (Numbers{9, 1, 4}));
}

} // namespace scalide
