#include "ir/text.h"
#include "ir/verify.h"
#include "transforms/analysis/passes.h"
#include <gtest/gtest.h>

namespace scalide {

namespace {

constexpr auto f32 = Dtype::f32, e4m3 = Dtype::f8_e4m3fn;

/// A target whose library multiplies f8 where it lies along k.
const TargetFacts device = {"cuda", {{"lib", e4m3, e4m3, {{f32, Overflow::format, {}, {}}}, true}}};

/// The kinds of the kernels, each with its number of results.
std::string kernels(const std::string &signature, const std::string &nodes, const TargetFacts &target = device) {
    const Program program = parse_program("program p" + signature + " {\n" + nodes + "\n}\n", "test");
    verify(program, "");
    const Program result = fuse(program, target);
    verify(result, "fuse");
    std::string text;
    for (const Program &kernel : result.programs)
        text += (text.empty() ? "" : " ") + kernel.attributes.at("kind").word + std::to_string(kernel.results.size());
    return text;
}

const std::string converted = "sb = broadcast_in_dim(s) {dims: [], shape: [m, k]} : f32[m, k]\n p = mul(x, sb) : f32[m, k]\n"
                              "q = convert_element_type(p) {dtype: f8_e4m3fn} : f8_e4m3fn[m, k]\n"
                              "q32 = convert_element_type(q) {dtype: f32} : f32[m, k]\n";
const std::string forward = "y = dot_general(q32, w) {batch: [[], []], contract: [[1], [1]], preferred: f32} : f32[m, n]\n";
const std::string backward = "z = dot_general(g32, q32) {batch: [[], []], contract: [[0], [0]], preferred: f32} : f32[n, k]\n";
const std::string gradient = "g32 = convert_element_type(g) {dtype: f32} : f32[m, n]\n";
const std::string weights = "w = convert_element_type(v) {dtype: f32} : f32[n, k]\n";
const std::string amax = "a = abs(x) : f32[m, k]\n top = reduce_max(a) {axes: [0, 1]} : f32[]\n";

} // namespace

TEST(fuse_tiled, an_operand_of_two_products_is_converted_once_for_both_layouts) {
    const std::string signature = "(x: f32[m, k], s: f32[], v: f8_e4m3fn[n, k], g: f8_e4m3fn[m, n]) -> (y: f32[m, n], z: f32[n, k])";
    const std::string nodes = converted + weights + gradient + forward + backward;
    EXPECT_EQ(kernels(signature, nodes), "tiled1 tiled2 contract1 contract1") << "g is turned by itself";
    EXPECT_EQ(kernels(signature, nodes, {}), "contract1 contract1") << "elsewhere it is rounded where it is packed";
}

TEST(fuse_tiled, the_largest_magnitude_of_the_source_comes_from_the_same_pass) {
    const std::string signature =
        "(x: f32[m, k], s: f32[], v: f8_e4m3fn[n, k], g: f8_e4m3fn[m, n]) -> (y: f32[m, n], z: f32[n, k], top: f32[])";
    EXPECT_EQ(kernels(signature, converted + weights + gradient + forward + backward + amax), "tiled1 tiled3 contract1 contract1");
}

TEST(fuse_tiled, a_map_is_reduced_by_what_needs_no_order) {
    const auto step = [](const std::string &op) {
        return "y = exp(x) : f32[m, k]\n top = " + op + "(y) {axes: [0, 1]} : f32[]\n t = mul(top, top) : f32[]";
    };
    const std::string signature = "(x: f32[m, k]) -> (y: f32[m, k], t: f32[])";
    EXPECT_EQ(kernels(signature, step("reduce_max")), "tiled2") << "with the arithmetic after it";
    EXPECT_EQ(kernels(signature, step("reduce_sum")), "map1 full1");
    EXPECT_EQ(kernels(signature, step("reduce_max"), {}), "row2 scalar1") << "the largest of each row beside the map, then of all";
    EXPECT_EQ(kernels("(x: f32[m, k]) -> (t: f32[])", step("reduce_max")), "full1") << "nobody else wants the map";
    EXPECT_EQ(kernels("(x: f32[m, k] inout) -> (x = y, t: f32[])", step("reduce_max")), "map1 full1") << "tiles overwrite nothing";
    const std::string rank_0 = "(x: f32[m, k], w: f32[] inout) -> (y: f32[m, k], w = top)";
    EXPECT_EQ(kernels(rank_0, "y = exp(x) : f32[m, k]\n top = reduce_max(y) {axes: [0, 1]} : f32[]"), "map1 full1") << "of rank 0 neither";
    EXPECT_EQ(kernels("(x: f32[m, k], w: f32[] inout) -> (y: f32[m, k], w = t)", step("reduce_max")), "tiled2 scalar1");
}

} // namespace scalide
