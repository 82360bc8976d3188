#include "support.h"
#include "support/programs/random_program.h"
#include "transforms/analysis/passes.h"
#include <cmath>
#include <gtest/gtest.h>

namespace scalide {

TEST(transforms, simplify_keeps_what_it_can_not_improve) {
    EXPECT_EQ(simplified("(x: f32[4]) -> (z: f32[4]) {\n y = exp(x)\n z = mul(y, x)\n}"), "y = exp(x) : f32[4]\nz = mul(y, x) : f32[4]\n");
}

TEST(transforms, simplify_applies_identities) {
    EXPECT_EQ(simplified("(x: f32[4]) -> (r: f32[4] = c) {\n a = mul(x, 1)\n b = sub(a, 0)\n c = div(b, 1)\n}"), "");
    EXPECT_EQ(simplified("(x: f32[4]) -> (r: f32[4] = b) {\n a = neg(x)\n b = neg(a)\n}"), "");
    EXPECT_EQ(simplified("(x: f32[4], y: f32[4]) -> (r: f32[4] = b) {\n a = neg(y)\n b = add(x, a)\n}"), "sub = sub(x, y) : f32[4]\n");
}

TEST(transforms, simplify_takes_slices_of_what_was_concatenated) {
    const std::string joined =
        "(x: f32[2, 3], y: f32[4, 3], n: f32[k, 3]) -> (r: f32[2, 3] = s) {\n c = concatenate(x, y, n) {dimension: 0}\n";
    EXPECT_EQ(simplified(joined + " s = slice(c) {start: [0, 0], limit: [2, 3]}\n}"), "");
    EXPECT_EQ(simplified(joined + " s = slice(c) {start: [2, 0], limit: [6, 3], strides: [2, 1]}\n}"),
              "slice = slice(y) {limit: [4, 3], start: [0, 0], strides: [2, 1]} : f32[2, 3]\n");
    const std::string text = simplified(joined + " s = slice(c) {start: [1, 0], limit: [3, 3]}\n}");
    EXPECT_NE(text.find("concatenate("), std::string::npos) << text;
}

TEST(transforms, simplify_minds_negative_zero) {
    const std::string text = simplified("(x: f32[4]) -> (r: f32[4]) {\n r = add(x, 0)\n}");
    EXPECT_NE(text.find("add("), std::string::npos) << text;
    EXPECT_EQ(simplified("(x: f32[4]) -> (r: f32[4]) {\n a = exp(x)\n r = add(a, 0)\n}"), "a = exp(x) : f32[4]\n");
    EXPECT_EQ(simplified("(x: f32[4]) -> (r: f32[4]) {\n r = add(x, -0.0)\n}"), "");
}

// A maximum is -0 where one operand is and the other is below; a sum of terms that are all -0 begins with +0.
TEST(transforms, simplify_minds_negative_zero_of_choices_and_sums) {
    const std::string text = simplified("(x: f32[4], y: f32[4, 3]) -> (r: f32[4]) {\n"
                                        " s = reduce_sum(y) {axes: [1]}\n m = max(s, x)\n r = add(m, 0)\n}");
    EXPECT_NE(text.find("add("), std::string::npos) << text;
    EXPECT_EQ(simplified("() -> (r: f32[] = s) {\n z = constant() {value: -0.0}\n y = broadcast_in_dim(z) {shape: [3], dims: []}\n"
                         " s = reduce_sum(y) {axes: [0]}\n}"),
              "constant = constant() {dtype: f32, value: 0.0} : f32[]\n");
}

TEST(transforms, simplify_knows_that_the_largest_of_nothing_is_negative) {
    const std::string text = simplified("(x: f32[n]) -> (r: f32[] = r) {\n a = abs(x)\n m = reduce_max(a) {axes: [0]}\n r = max(m, 0)\n}");
    EXPECT_NE(text.find(" max("), std::string::npos) << text;
}

TEST(transforms, simplify_knows_that_scales_are_not_negative) {
    const std::string parts = "(x: f32[4] data of x, s: f32[] scale of x) -> ";
    EXPECT_EQ(simplified(parts + "(r: f32[] = m) {\n z = constant() {value: 0}\n a = abs(s)\n m = max(z, a)\n}"), "");
    EXPECT_EQ(simplified(parts + "(r: f32[] = m) {\n m = divide_no_nan(0, s)\n}"), "m$0 = constant() {dtype: f32, value: 0.0} : f32[]\n");
    EXPECT_NE(simplified("(x: f32[]) -> (r: f32[] = a) {\n a = abs(x)\n}"), "");
    EXPECT_EQ(simplified("(x: f32[]) -> (r: f32[] = c) {\n n = norm_to_scale(x) {to: 2}\n c = clamp_scale(n)\n}"),
              "n = norm_to_scale(x) {to: 2} : f32[]\n");
    EXPECT_NE(simplified("(x.data: f32[4], x.scale: f32[]) -> (r: f32[] = a) {\n a = abs(x.scale)\n}"), "") << "a name says nothing";
}

TEST(transforms, simplify_multiplies_in_the_order_that_a_transpose_asks_for) {
    const std::string product =
        "(x: f32[b, m, k], y: f32[b, k, n]) -> (r: f32[b, n, m]RESULTS) {\n"
        " p = dot_general(x, y) {contract: [[2], [1]], batch: [[0], [0]]}\n r = transpose(p) {permutation: ORDER}\n}";
    const auto of = [&](const std::string &order, const std::string &results) {
        std::string text = product;
        text.replace(text.find("ORDER"), 5, order);
        return simplified(text.replace(text.find("RESULTS"), 7, results));
    };
    EXPECT_EQ(of("[0, 2, 1]", ""), "r = dot_general(y, x) {batch: [[0], [0]], contract: [[1], [2]], preferred: f32} : f32[b, n, m]\n");
    EXPECT_NE(of("[0, 2, 1]", ", q: f32[b, m, n] = p").find("transpose"), std::string::npos) << "two products instead of one";
}

TEST(transforms, simplify_multiplies_where_nothing_is_summed) {
    EXPECT_EQ(simplified("(x: f32[3], y: f32[4]) -> (r: f32[3, 4]) {\n r = dot_general(x, y) {contract: [[], []]}\n}"),
              "broadcast_in_dim = broadcast_in_dim(x) {dims: [0], shape: [3, 4]} : f32[3, 4]\n"
              "broadcast_in_dim1 = broadcast_in_dim(y) {dims: [1], shape: [3, 4]} : f32[3, 4]\n"
              "r = mul(broadcast_in_dim, broadcast_in_dim1) : f32[3, 4]\n");
    const auto is_product = [](const std::string &text) { return simplified(text).find("dot_general") == std::string::npos; };
    const std::string one = "(x: f32[b, 1, m], y: f32[n, 1, b]) -> (r: f32[b, m, n]) {\n"
                            " r = dot_general(x, y) {contract: [[1], [1]], batch: [[0], [2]]}\n}";
    EXPECT_TRUE(is_product(one));
    EXPECT_TRUE(is_product("(x: f16[3], y: f16[4]) -> (r: f32[3, 4]) {\n r = dot_general(x, y) {contract: [[], []], preferred: f32}\n}"));
    EXPECT_TRUE(is_product("(x: i8[b], y: i8[b]) -> (r: i32[b]) {\n"
                           " r = dot_general(x, y) {contract: [[], []], batch: [[0], [0]], preferred: i32}\n}"));
    EXPECT_FALSE(is_product("(x: f32[m, k], y: f32[k, n]) -> (r: f32[m, n]) {\n r = dot_general(x, y) {contract: [[1], [0]]}\n}"))
        << "a symbol may have other values than 1";
    EXPECT_EQ(simplified("(x: f32[0, 3], y: f32[0, 4]) -> (r: f32[3, 4]) {\n r = dot_general(x, y) {contract: [[0], [0]]}\n}"),
              "constant = constant() {dtype: f32, value: 0.0} : f32[]\n"
              "r = broadcast_in_dim(constant) {dims: [], shape: [3, 4]} : f32[3, 4]\n");
}

TEST(transforms, products_without_a_sum_keep_every_bit) {
    const std::vector<std::string> programs = {
        "(x: f32[2, 1, 3], y: f32[4, 1, 2]) -> (r: f32[2, 3, 4]) {\n"
        " r = dot_general(x, y) {contract: [[1], [1]], batch: [[0], [2]]}\n}",
        "(x: f32[1, 3, 1], y: f32[1, 1, 4, 2]) -> (r: f32[3, 4, 2]) {\n r = dot_general(x, y) {contract: [[2, 0], [0, 1]]}\n}",
        "(x: f16[3], y: f16[4]) -> (r: f32[3, 4]) {\n r = dot_general(x, y) {contract: [[], []], preferred: f32}\n}",
        "(x: bf16[3], y: bf16[4]) -> (r: bf16[3, 4]) {\n r = dot_general(x, y) {contract: [[], []]}\n}",
        "(x: f32[3], y: f32[4]) -> (r: f16[3, 4]) {\n r = dot_general(x, y) {contract: [[], []], preferred: f16}\n}",
        "(x: i8[3], y: i8[3]) -> (r: i32[3]) {\n r = dot_general(x, y) {contract: [[], []], batch: [[0], [0]], preferred: i32}\n}",
        "(x: u8[5], y: u8[4]) -> (r: u8[4, 5]) {\n p = dot_general(x, y) {contract: [[], []]}\n r = transpose(p) {permutation: [1, 0]}\n}"};
    for (const std::string &text : programs) {
        SCOPED_TRACE(text);
        const Program before = typed(text), after = simplify(before, rules());
        std::mt19937 random(7);
        std::vector<Array> inputs = random_inputs(before, random);
        for (Array &input : inputs) input.data[0] = is_float(input.dtype) ? -0.0 : 200;
        if (inputs[0].dtype == Dtype::i8) inputs[0].data[0] = inputs[1].data[0] = -100;
        const Array expected = interpret(before, inputs, rules(), Mode::stored)[0],
                    got = interpret(after, inputs, rules(), Mode::stored)[0];
        EXPECT_EQ(got.shape, expected.shape);
        for (size_t i = 0; i < expected.data.size(); i++) {
            EXPECT_EQ(got.data[i], expected.data[i]) << i;
            EXPECT_EQ(std::signbit(got.data[i]), std::signbit(expected.data[i])) << i;
        }
    }
}

TEST(transforms, simplify_compares_and_chooses_in_f32_what_f32_numbers_give) {
    const std::string wide = "(x: f32[], y: f64[]) -> (r: f32[]) {\n w = convert_element_type(x) {dtype: f64}\n";
    EXPECT_EQ(simplified(wide + " a = max(w, 0.5)\n b = min(a, 4)\n r = convert_element_type(b) {dtype: f32}\n}"),
              "a$0 = constant() {dtype: f32, value: 0.5} : f32[]\nmax = max(x, a$0) : f32[]\n"
              "b$1 = constant() {dtype: f32, value: 4.0} : f32[]\nmin = min(max, b$1) : f32[]\n");
    EXPECT_NE(simplified(wide + " a = max(w, 0.1)\n r = convert_element_type(a) {dtype: f32}\n}").find("f64"), std::string::npos)
        << "0.1 is no f32 number";
    EXPECT_NE(simplified(wide + " a = max(w, y)\n r = convert_element_type(a) {dtype: f32}\n}").find("f64"), std::string::npos);
}

TEST(transforms, simplify_does_not_drop_products_with_zero) {
    EXPECT_NE(simplified("(x: f32[4]) -> (r: f32[4]) {\n r = mul(x, 0)\n}").find("mul("), std::string::npos);
}

TEST(transforms, simplify_folds_constants) {
    EXPECT_EQ(simplified("() -> (r: f32[] = c) {\n a = constant() {value: 2}\n b = mul(a, 3)\n c = exp2(b)\n}"),
              "constant1 = constant() {dtype: f32, value: 64.0} : f32[]\n");
    EXPECT_EQ(simplified("() -> (r: f32[2, 3] = c) {\n a = constant() {value: 2}\n"
                         " b = broadcast_in_dim(a) {shape: [4, 6], dims: []}\n c = slice(b) {start: [0, 1], limit: [2, 4]}\n}"),
              "a = constant() {dtype: f32, value: 2.0} : f32[]\n"
              "broadcast_in_dim = broadcast_in_dim(a) {dims: [], shape: [2, 3]} : f32[2, 3]\n");
    EXPECT_EQ(simplified("() -> (r: f32[] = c) {\n a = constant() {value: 0.1}\n"
                         " b = broadcast_in_dim(a) {shape: [8], dims: []}\n c = reduce_sum(b) {axes: [0]}\n}"),
              "constant = constant() {dtype: f32, value: 0.800000011920929} : f32[]\n");
}

TEST(transforms, simplify_leaves_extents_that_it_does_not_know) {
    const std::string text = "(x: f32[b]) -> (r: f32[]) {\n a = constant() {value: 1}\n"
                             " s = broadcast_in_dim(a) {shape: [b], dims: []}\n r = reduce_sum(s) {axes: [0]}\n}";
    EXPECT_NE(simplified(text).find("reduce_sum("), std::string::npos);
}

TEST(transforms, simplify_chooses) {
    EXPECT_EQ(simplified("(x: f32[4], y: f32[4]) -> (r: f32[4]) {\n z = constant() {value: 0, dtype: f32}\n"
                         " p = eq(z, 0)\n q = broadcast_in_dim(p) {shape: [4], dims: []}\n r = select_n(q, x, y)\n}"),
              "");
    EXPECT_EQ(simplified("(p: bool[4], x: f32[4]) -> (r: f32[4]) {\n r = select_n(p, x, x)\n}"), "");
    EXPECT_EQ(simplified("(p: bool[4]) -> (r: f32[4]) {\n z = constant() {value: 0}\n"
                         " a = broadcast_in_dim(z) {shape: [4], dims: []}\n r = select_n(p, a, a)\n}"),
              "z = constant() {dtype: f32, value: 0.0} : f32[]\na = broadcast_in_dim(z) {dims: [], shape: [4]} : f32[4]\n");
    EXPECT_EQ(simplified("(p: bool[4], x: f32[4], y: f32[4]) -> (r: f32[4]) {\n n = not(p)\n r = select_n(n, x, y)\n}"),
              "select_n = select_n(p, y, x) : f32[4]\n");
}

TEST(transforms, simplify_divides_by_powers_of_two_through_products) {
    EXPECT_EQ(simplified("(x: f32[]) -> (r: f32[]) {\n r = div(x, 8)\n}"),
              "constant1 = constant() {dtype: f32, value: 0.125} : f32[]\nmul = mul(x, constant1) : f32[]\n");
    EXPECT_NE(simplified("(x: f32[]) -> (r: f32[]) {\n r = div(x, 3)\n}").find("div("), std::string::npos);
    EXPECT_NE(simplified("(x: i32[]) -> (r: i32[]) {\n r = div(x, 8)\n}").find("div("), std::string::npos);
}

TEST(transforms, simplify_makes_equal_nodes_once) {
    EXPECT_EQ(simplified("(x: f32[4]) -> (r: f32[4]) {\n a = exp(x)\n b = exp(x) : f32[4] cotangent\n r = mul(a, b)\n}"),
              "a = exp(x) : f32[4]\nr = mul(a, a) : f32[4]\n");
}

TEST(transforms, simplify_drops_dead_nodes) { EXPECT_EQ(simplified("(x: f32[4]) -> (r: f32[4] = x) {\n a = exp(x)\n}"), ""); }

TEST(transforms, simplify_merges_movements) {
    EXPECT_EQ(simplified("(x: f32[a, 6]) -> (r: f32[6, a] = z) {\n y = transpose(x) {permutation: [1, 0]}\n"
                         " w = transpose(y) {permutation: [1, 0]}\n z = transpose(w) {permutation: [1, 0]}\n}"),
              "y = transpose(x) {permutation: [1, 0]} : f32[6, a]\n");
    EXPECT_EQ(simplified("(x: f32[4, 6]) -> (r: f32[2, 12] = z) {\n y = reshape(x) {shape: [24]}\n z = reshape(y) {shape: [2, 12]}\n}"),
              "reshape = reshape(x) {shape: [2, 12]} : f32[2, 12]\n");
    EXPECT_EQ(simplified("(x: f32[b, 6]) -> (r: f32[b, 6] = z) {\n y = reshape(x) {shape: [6*b]}\n z = reshape(y) {shape: [b, 6]}\n}"), "");
    EXPECT_EQ(simplified("(x: f32[20]) -> (r: f32[3] = z) {\n y = slice(x) {start: [2], limit: [20], strides: [3]}\n"
                         " z = slice(y) {start: [1], limit: [6], strides: [2]}\n}"),
              "slice = slice(x) {limit: [18], start: [5], strides: [6]} : f32[3]\n");
    EXPECT_EQ(simplified("(x: f32[4]) -> (r: f32[6, 5, 4] = z) {\n y = broadcast_in_dim(x) {shape: [5, 4], dims: [1]}\n"
                         " z = broadcast_in_dim(y) {shape: [6, 5, 4], dims: [1, 2]}\n}"),
              "broadcast_in_dim = broadcast_in_dim(x) {dims: [2], shape: [6, 5, 4]} : f32[6, 5, 4]\n");
    EXPECT_EQ(simplified("(x: f32[4]) -> (r: f32[4, 5] = z) {\n y = broadcast_in_dim(x) {shape: [5, 4], dims: [1]}\n"
                         " z = transpose(y) {permutation: [1, 0]}\n}"),
              "broadcast_in_dim = broadcast_in_dim(x) {dims: [0], shape: [4, 5]} : f32[4, 5]\n");
}

TEST(transforms, simplify_widens_after_moves) {
    EXPECT_EQ(simplified("(x: f16[4, 6]) -> (r: f32[3, 4] = z) {\n w = convert_element_type(x) {dtype: f32}\n"
                         " y = transpose(w) {permutation: [1, 0]}\n z = slice(y) {start: [0, 0], limit: [3, 4]}\n}"),
              "transpose = transpose(x) {permutation: [1, 0]} : f16[6, 4]\n"
              "slice = slice(transpose) {limit: [3, 4], start: [0, 0], strides: []} : f16[3, 4]\n"
              "convert_element_type1 = convert_element_type(slice) {dtype: f32} : f32[3, 4]\n");
    const std::string integers =
        "y = convert_element_type(x) {dtype: f32} : f32[4, 6]\nz = transpose(y) {permutation: [1, 0]} : f32[6, 4]\n";
    EXPECT_EQ(simplified("(x: i8[4, 6]) -> (r: f32[6, 4] = z) {\n y = convert_element_type(x) {dtype: f32}\n"
                         " z = transpose(y) {permutation: [1, 0]}\n}"),
              integers);
}

TEST(transforms, simplify_keeps_rounding) {
    const std::string there = "(x: f32[4]) -> (r: f32[4] = w) {\n h = convert_element_type(x) {dtype: f16}\n"
                              " w = convert_element_type(h) {dtype: f32}\n}";
    EXPECT_EQ(simplified(there), "h = convert_element_type(x) {dtype: f16} : f16[4]\nw = convert_element_type(h) {dtype: f32} : f32[4]\n");
    EXPECT_EQ(simplified("(x: f16[4]) -> (r: f16[4] = h) {\n w = convert_element_type(x) {dtype: f32}\n"
                         " h = convert_element_type(w) {dtype: f16}\n}"),
              "");
    EXPECT_EQ(simplified("() -> (r: f32[] = w) {\n x = constant() {value: 0.1}\n h = convert_element_type(x) {dtype: f16}\n"
                         " w = convert_element_type(h) {dtype: f32}\n}"),
              "constant = constant() {dtype: f32, value: 0.0999755859375} : f32[]\n");
}

TEST(transforms, simplify_works_on_broadcast_scalars_in_rank_0) {
    EXPECT_EQ(simplified("(s: f32[], t: f32[]) -> (r: f32[4] = m) {\n a = broadcast_in_dim(s) {shape: [4], dims: []}\n"
                         " b = broadcast_in_dim(t) {shape: [4], dims: []}\n m = mul(a, b)\n}"),
              "mul = mul(s, t) : f32[]\nbroadcast_in_dim = broadcast_in_dim(mul) {dims: [], shape: [4]} : f32[4]\n");
}

TEST(transforms, simplify_scans_one_element) {
    EXPECT_EQ(simplified("(x: i32[5, 1]) -> (r: i32[5, 1] = a) {\n a = cumsum(x) {axis: 1, reverse: true}\n}"), "");
    EXPECT_EQ(simplified("(x: f32[1]) -> (r: f32[1] = b) {\n a = cumprod(x) {axis: 0}\n b = cummax(a) {axis: 0}\n}"), "");
    EXPECT_NE(simplified("(x: f32[1]) -> (r: f32[1] = a) {\n a = cumsum(x) {axis: 0}\n}").find("add("), std::string::npos); // -0 is 0
    EXPECT_EQ(simplified("(x: f32[1]) -> (r: f32[1] = a) {\n e = exp(x)\n a = cumlogsumexp(e) {axis: 0}\n}"), "e = exp(x) : f32[1]\n");
    EXPECT_EQ(simplified("(x: f32[5, 1]) -> (r: i32[5, 1] = a) {\n a = argsort(x) {dimension: 1}\n}").find("sort"), std::string::npos);
}

} // namespace scalide
