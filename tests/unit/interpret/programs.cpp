#include "fixture.h"
#include <gtest/gtest.h>

namespace scalide {

namespace {

using Numbers = std::vector<double>;

std::string error_of(const std::string &text, const std::vector<Array> &inputs) {
    try {
        run(text, inputs);
    } catch (const UserError &error) {
        return error.what();
    }
    return "no error";
}

const std::string sum = "program p(x: f32[2*b, c], y: f32[b*c]) -> (z: f32[2*b, c]) {\n  z = add(x, x) : f32[2*b, c]\n}\n";

} // namespace

TEST(interpret, extents_follow_from_the_inputs) {
    const std::vector<Array> inputs{f32_array({4, 3}, Numbers(12, 1)), f32_array({6}, Numbers(6, 1))};
    EXPECT_EQ(run(sum, inputs)[0].shape, (std::vector<int64_t>{4, 3}));
}

TEST(interpret, inputs_that_do_not_fit) {
    const Array x = f32_array({4, 3}, Numbers(12, 1)), y = f32_array({6}, Numbers(6, 1));
    EXPECT_EQ(error_of(sum, {x}), "p: the number of arguments must be 2, got 1");
    EXPECT_EQ(error_of(sum, {x, i32_array({6}, Numbers(6, 1))}), "p.y: dtype must be f32, got i32");
    EXPECT_EQ(error_of(sum, {y, y}), "p.x: rank must be 2, got 1");
    EXPECT_EQ(error_of(sum, {f32_array({3, 4}, Numbers(12, 1)), y}), "p.x: the extent must have the form 2*b, got 3");
    EXPECT_EQ(error_of(sum, {x, f32_array({5}, Numbers(5, 1))}), "p.y: the extent must be b*c = 6, got 5");
    EXPECT_EQ(error_of(sum, {x, f32_array({6}, {1})}), "p.y: the number of elements must be 6, got 1");
    EXPECT_EQ(error_of("program p [b in 8..64 step 8] (x: f32[b]) -> (y: f32[b] = x) {\n}\n", {f32_array({12}, Numbers(12, 1))}),
              "p.b: must be in 8..64 step 8, got 12");
    EXPECT_EQ(error_of("program p(x: f32[b*c]) -> (y: f32[b*c] = x) {\n}\n", {y}),
              "p.b: the extents of the arguments give the symbol no value");
}

TEST(interpret, inputs_are_rounded_in_mode_stored) {
    const std::string text = "program p(x: f16[2]) -> (y: f16[2] = x) {\n}\n";
    const Array x{Dtype::f16, {2}, {1 + 1.0 / 4096, std::numeric_limits<double>::infinity()}};
    EXPECT_EQ(run_one(text, {x}, Mode::stored), (Numbers{1, std::numeric_limits<double>::infinity()}));
    EXPECT_EQ(run_one(text, {x}, Mode::real), x.data);
}

TEST(interpret, calls_with_symbols_and_inout_arguments) {
    const std::string text = "program update {kind: map} (w: f32[b] inout, g: f32[b]) -> (w = w1) {\n"
                             "  n = size() {extent: b} : f32[]\n"
                             "  m = broadcast_in_dim(n) {shape: [b], dims: []} : f32[b]\n"
                             "  s = mul(g, m) : f32[b]\n"
                             "  w1 = sub(w, s) : f32[b]\n"
                             "}\n"
                             "program step(w: f32[b] inout, g: f32[b]) -> (w = w2) {\n"
                             "  w1 = call(w, g) {program: update} : f32[b]\n"
                             "  w2 = call(w1, g) {program: update} : f32[b]\n"
                             "}\n";
    EXPECT_EQ(run_one(text, {f32_array({2}, {10, 20}), f32_array({2}, {1, 2})}), (Numbers{6, 12}));
}

TEST(interpret, composites_run_through_their_value) {
    Rulebook rulebook = Rulebook::load({std::string(SCALIDE_RULES_DIR)});
    const std::string text = "program p(x: f32[b, 2]) -> (y: f32[b, 2], z: f32[b]) {\n"
                             "  y = softmax(x) {axes: [1]} : f32[b, 2]\n"
                             "  z = logsumexp(x) {axes: [1]} : f32[b]\n}\n";
    const std::vector<Array> outputs = run(text, {f32_array({1, 2}, {1000, 1000})}, Mode::real, rulebook);
    EXPECT_EQ(outputs[0].data, (Numbers{0.5, 0.5}));
    EXPECT_DOUBLE_EQ(outputs[1].data[0], 1000.6931471805599453);
}

TEST(interpret, unknown_operators_are_named) {
    EXPECT_THROW(run_one("program p(x: f32[2]) -> (y: f32[2]) {\n  y = frobnicate(x) : f32[2]\n}\n", {f32_array({2}, {1, 2})}), UserError);
}

/// Scales of rows, of blocks of two, and of elements along the summed axis.
TEST(interpret, scaled_matmul_scales_blocks) {
    const Rulebook rulebook = Rulebook::load({SCALIDE_RULES_DIR});
    const auto product = [&](int64_t lhs_blocks, const Numbers &lhs_scales, int64_t rhs_blocks, const Numbers &rhs_scales) {
        const std::string text = "program p(x: f32[2, 4], w: f32[2, 4], s: f32[2, " + std::to_string(lhs_blocks) + "], t: f32[2, " +
                                 std::to_string(rhs_blocks) +
                                 "]) -> (y: f32[2, 2]) {\n  y = scaled_matmul(x, w, s, t) {preferred: f32} : f32[2, 2]\n}\n";
        return run(text,
                   {f32_array({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8}), f32_array({2, 4}, {1, 1, 2, 2, 1, 0, 0, 1}),
                    f32_array({2, lhs_blocks}, lhs_scales), f32_array({2, rhs_blocks}, rhs_scales)},
                   Mode::stored, rulebook)[0]
            .data;
    };
    EXPECT_EQ(product(1, {1, 1}, 1, {1, 1}), (Numbers{17, 5, 41, 13}));
    EXPECT_EQ(product(1, {2, 0.5}, 1, {1, 4}), (Numbers{34, 40, 20.5, 26}));
    EXPECT_EQ(product(2, {2, 0.5, 1, 4}, 1, {1, 1}), (Numbers{2 * 3 + 0.5 * 14, 2 * 1 + 0.5 * 4, 11 + 4 * 30, 5 + 4 * 8}));
    EXPECT_EQ(product(1, {1, 1}, 4, {1, 2, 3, 4, 4, 3, 2, 1}), (Numbers{1 + 4 + 18 + 32, 4 + 4, 5 + 12 + 42 + 64, 20 + 8}));
}

} // namespace scalide
