#include "lower/shapes/axes.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "lower/shapes/rows.h"
#include <gtest/gtest.h>

namespace scalide {
namespace {

Program parse(const std::string &signature, const std::string &body) {
    return parse_program("program k {kind: map} [b in 0..1000, s in 0..1000] " + signature + " {\n" + body + "}\n", "axes.scl");
}

/// The text of a value's type after merge_axes.
std::string merged_type(const Program &program, const std::string &name) {
    const Program merged = merge_axes(program);
    verify(merged, "merge_axes");
    for (const Value &value : merged.values) {
        if (value.name == name) {
            return to_string(value.type);
        }
    }
    return "no value " + name;
}

const Node &last_node(const Program &program) { return program.nodes.back(); }

TEST(lower, merges_all_axes_of_an_elementwise_kernel) {
    const Program program = parse("(x: f32[b, 3, 1, s]) -> (z: f32[b, 3, 1, s])", "z = mul(x, x) : f32[b, 3, 1, s]\n");
    EXPECT_EQ(merged_type(program, "x"), "f32[3*b*s]");
    EXPECT_EQ(merged_type(program, "z"), "f32[3*b*s]");
}

TEST(lower, a_bias_keeps_the_last_axis_apart) {
    const Program program = parse("(x: f32[b, s, 10], w: f32[10]) -> (z: f32[b, s, 10])",
                                  "wb = broadcast_in_dim(w) {dims: [2], shape: [b, s, 10]} : f32[b, s, 10]\n"
                                  "z = add(x, wb) : f32[b, s, 10]\n");
    EXPECT_EQ(merged_type(program, "z"), "f32[b*s, 10]");
    EXPECT_EQ(to_string(merge_axes(program).nodes[0].attributes), "{dims: [1], shape: [b*s, 10]}");
}

TEST(lower, a_broadcast_scalar_keeps_nothing_apart) {
    const Program program =
        parse("(x: f32[b, s], w: f32[]) -> (z: f32[b, s])", "wb = broadcast_in_dim(w) {dims: [], shape: [b, s]} : f32[b, s]\n"
                                                            "z = add(x, wb) : f32[b, s]\n");
    EXPECT_EQ(merged_type(program, "z"), "f32[b*s]");
}

TEST(lower, an_axis_of_extent_1_that_grows_is_dropped_from_the_operand) {
    const Program program =
        parse("(x: f32[b, 10], w: f32[1, 10]) -> (z: f32[b, 10])", "wb = broadcast_in_dim(w) {dims: [0, 1], shape: [b, 10]} : f32[b, 10]\n"
                                                                   "z = add(x, wb) : f32[b, 10]\n");
    EXPECT_EQ(merged_type(program, "w"), "f32[10]");
    EXPECT_EQ(merged_type(program, "z"), "f32[b, 10]");
}

TEST(lower, a_transpose_keeps_together_what_stays_together) {
    const Program program =
        parse("(x: f32[b, s, 4, 5]) -> (z: f32[4, 5, b, s])", "z = transpose(x) {permutation: [2, 3, 0, 1]} : f32[4, 5, b, s]\n");
    EXPECT_EQ(merged_type(program, "x"), "f32[b*s, 20]");
    EXPECT_EQ(merged_type(program, "z"), "f32[20, b*s]");
    EXPECT_EQ(to_string(last_node(merge_axes(program)).attributes), "{permutation: [1, 0]}");
}

TEST(lower, a_reshape_disappears_into_merged_axes) {
    const Program program =
        parse("(x: f32[b, 12], y: f32[b, 3, 4]) -> (z: f32[b, 3, 4])", "r = reshape(x) {shape: [b, 3, 4]} : f32[b, 3, 4]\n"
                                                                       "z = add(r, y) : f32[b, 3, 4]\n");
    EXPECT_EQ(merged_type(program, "x"), "f32[12*b]");
    EXPECT_EQ(merged_type(program, "z"), "f32[12*b]");
}

TEST(lower, touched_axes_stay_alone_and_attributes_follow) {
    const Program program = parse("(x: f32[b, 6, 2, 5], f: f32[]) -> (p: f32[b, 9, 2, 5])",
                                  "r = rev(x) {dimensions: [1]} : f32[b, 6, 2, 5]\n"
                                  "s = slice(r) {start: [0, 1, 0, 0], limit: [b, 6, 2, 5], strides: [1, 2, 1, 1]} : f32[b, 3, 2, 5]\n"
                                  "c = concatenate(s, x) {dimension: 1} : f32[b, 9, 2, 5]\n"
                                  "p = pad(c, f) {low: [0, -1, 0, 0], high: [0, 1, 0, 0]} : f32[b, 9, 2, 5]\n");
    const Program merged = merge_axes(program);
    EXPECT_EQ(merged_type(program, "p"), "f32[b, 9, 10]");
    EXPECT_EQ(to_string(merged.nodes[0].attributes), "{dimensions: [1]}");
    EXPECT_EQ(to_string(merged.nodes[1].attributes), "{limit: [b, 6, 10], start: [0, 1, 0], strides: [1, 2, 1]}");
    EXPECT_EQ(to_string(merged.nodes[2].attributes), "{dimension: 1}");
    EXPECT_EQ(to_string(merged.nodes[3].attributes), "{high: [0, 1, 0], low: [0, -1, 0]}");
}

TEST(lower, neighbouring_reduced_axes_merge_even_of_extent_1) {
    const Program program = parse("(x: f32[b, s, 1, 7]) -> (z: f32[b])", "z = reduce_sum(x) {axes: [1, 2, 3]} : f32[b]\n");
    EXPECT_EQ(merged_type(program, "x"), "f32[b, 7*s]");
    EXPECT_EQ(to_string(last_node(merge_axes(program)).attributes), "{axes: [1]}");
    const Program one = parse("(x: f32[b, 1]) -> (z: f32[b])", "z = reduce_sum(x) {axes: [1]} : f32[b]\n");
    EXPECT_EQ(merged_type(one, "x"), "f32[b, 1]");
}

TEST(lower, results_of_one_shape_keep_one_shape) {
    const Program program =
        parse("(x: f32[b, s], y: f32[s, b]) -> (z: f32[b, s], t: f32[b, s])", "z = mul(x, x) : f32[b, s]\n"
                                                                              "t = transpose(y) {permutation: [1, 0]} : f32[b, s]\n");
    EXPECT_EQ(merged_type(program, "z"), "f32[b, s]");
    EXPECT_EQ(merged_type(program, "t"), "f32[b, s]");
}

TEST(lower, a_contraction_keeps_its_axes) {
    const Program program = parse("(x: f32[1, s], y: f32[s, 1]) -> (z: f32[1, 1])",
                                  "z = dot_general(x, y) {contract: [[1], [0]], batch: [[], []]} : f32[1, 1]\n");
    EXPECT_EQ(merged_type(program, "z"), "f32[1, 1]");
    EXPECT_EQ(to_string(last_node(merge_axes(program)).attributes), "{batch: [[], []], contract: [[1], [0]]}");
}

TEST(lower, row_axes_merge_where_an_argument_needs_one_of_them) {
    const Program program =
        parse("(x: f32[b, s, 10], k: f32[s]) -> (m: f32[b, s])", "kb = broadcast_in_dim(k) {dims: [1], shape: [b, s, 10]} : f32[b, s, 10]\n"
                                                                 "p = mul(x, kb) : f32[b, s, 10]\n"
                                                                 "m = reduce_max(p) {axes: [2]} : f32[b, s]\n");
    const Program merged = merge_rows(merge_axes(program));
    verify(merged, "merge_rows");
    EXPECT_EQ(to_string(merged), "program k {kind: map} [b in 0..1000, s in 0..1000] (x: f32[b*s, 10], k: f32[s]) -> (m: f32[b*s]) {\n"
                                 "  kb = broadcast_in_dim(k) {dims: [1], shape: [b, s, 10]} : f32[b, s, 10]\n"
                                 "  kb1 = reshape(kb) {shape: [b*s, 10]} : f32[b*s, 10]\n"
                                 "  p = mul(x, kb1) : f32[b*s, 10]\n"
                                 "  m = reduce_max(p) {axes: [1]} : f32[b*s]\n"
                                 "}\n");
}

} // namespace
} // namespace scalide
