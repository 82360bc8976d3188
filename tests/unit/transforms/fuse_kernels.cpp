#include "ir/text.h"
#include "ir/verify.h"
#include "transforms/analysis/fusion_report.h"
#include <gtest/gtest.h>

namespace scalide {

namespace {

Fusion fuse_text(const std::string &signature, const std::string &nodes, const TargetFacts &facts = {}) {
    const Program program = parse_program("program test" + signature + " {\n" + nodes + "\n}\n", "test.scl");
    verify(program, "");
    Fusion fusion = fuse_and_explain(program, facts);
    verify(fusion.program, "fuse");
    return fusion;
}

/// The kernels of the calls, in order.
std::string kernels(const Fusion &fusion) {
    std::string text;
    for (const KernelReport &kernel : fusion.report.kernels) text += (text.empty() ? "" : " ") + kernel.kernel;
    return text;
}

} // namespace

TEST(transforms, fuse_moves_axes_that_are_reduced_in_the_middle) {
    const Fusion columns = fuse_text("(x: f32[a, m, n]) -> (y: f32[a, n])", "y = reduce_max(x) {axes: [1]} : f32[a, n]");
    EXPECT_EQ(kernels(columns), "column_1");
    EXPECT_EQ(to_string(columns.program.programs[0]), "program column_1 {kind: column} (a0: f32[a, m, n]) -> (r0: f32[a, n] = v1) {\n"
                                                      "  v0 = transpose(a0) {permutation: [1, 0, 2]} : f32[m, a, n]\n"
                                                      "  v1 = reduce_max(v0) {axes: [0]} : f32[a, n]\n"
                                                      "}\n");
    const Fusion rows = fuse_text("(x: f32[a, m, 3]) -> (y: f32[a, 3])", "y = reduce_max(x) {axes: [1]} : f32[a, 3]");
    EXPECT_EQ(kernels(rows), "row_1");
    EXPECT_EQ(to_string(rows.program.programs[0]), "program row_1 {kind: row, row_axes: 1} (a0: f32[a, m, 3]) -> (r0: f32[a, 3] = v1) {\n"
                                                   "  v0 = transpose(a0) {permutation: [0, 2, 1]} : f32[a, 3, m]\n"
                                                   "  v1 = reduce_max(v0) {axes: [2]} : f32[a, 3]\n"
                                                   "}\n");
}

TEST(transforms, fuse_folds_no_axis_of_extent_1) {
    const std::string signature = "(x: f32[1, 18, 2]) -> (s: f32[18, 2], t: f32[18], i: i32[18, 2])";
    const Fusion fusion = fuse_text(signature, "s = reduce_sum(x) {axes: [0]} : f32[18, 2]\n"
                                               "t = reduce_max(x) {axes: [0, 2]} : f32[18]\n"
                                               "i = argmax(x) {axis: 0} : i32[18, 2]\n");
    EXPECT_EQ(kernels(fusion), "map_1 row_1");
    EXPECT_EQ(to_string(fusion.program.programs[0]),
              "program map_1 {kind: map} (a0: f32[1, 18, 2]) -> (r0: f32[18, 2] = v3, r1: i32[18, 2] = v5) {\n"
              "  v0 = reshape(a0) {shape: [18, 2]} : f32[18, 2]\n"
              "  v1 = constant() {dtype: f32, value: 0.0} : f32[]\n"
              "  v2 = broadcast_in_dim(v1) {dims: [], shape: [18, 2]} : f32[18, 2]\n"
              "  v3 = add(v0, v2) : f32[18, 2]\n"
              "  v4 = constant() {dtype: i32, value: 0} : i32[]\n"
              "  v5 = broadcast_in_dim(v4) {dims: [], shape: [18, 2]} : i32[18, 2]\n"
              "}\n");
    EXPECT_EQ(to_string(fusion.program.programs[1]), "program row_1 {kind: row, row_axes: 1} (a0: f32[1, 18, 2]) -> (r0: f32[18] = v1) {\n"
                                                     "  v0 = reshape(a0) {shape: [18, 2]} : f32[18, 2]\n"
                                                     "  v1 = reduce_max(v0) {axes: [1]} : f32[18]\n"
                                                     "}\n");
}

// A column kernel has a pass over its results for their total, and none for the total of another array of their shape.
TEST(transforms, fuse_leaves_totals_of_other_arrays_out_of_a_column_kernel) {
    const std::string before = "p = gt(v, w) : bool[5]\n t = select_n(p, w, v) : f32[5]\n q = select_n(p, v, w) : f32[5]\n",
                      after = "s = reduce_sum(x) {axes: [0]} : f32[5]\n a = abs(q) : f32[5]\n u = sub(a, s) : f32[5]\n"
                              " z = broadcast_in_dim(u) {dims: [1], shape: [3, 5]} : f32[3, 5]\n";
    const std::string signature = "(v: f32[5], x: f32[3, 5], w: f32[5]) -> (z: f32[3, 5], top: f32[])";
    EXPECT_EQ(kernels(fuse_text(signature, before + after + "top = reduce_max(u) {axes: [0]} : f32[]")), "column_1 map_1");
    EXPECT_EQ(kernels(fuse_text(signature, before + "top = reduce_max(t) {axes: [0]} : f32[]\n" + after)), "full_1 column_1 map_1");
}

TEST(transforms, fuse_computes_cheap_operands_in_the_packing) {
    const std::string dot = "y = dot_general(p, v) {batch: [[], []], contract: [[1], [0]]} : f32[m, n]";
    const std::string signature = "(x: f32[m, k], u: f32[m, k], v: f32[k, n]) -> (y: f32[m, n])";
    EXPECT_EQ(kernels(fuse_text(signature, "q = mul(x, u) : f32[m, k]\n p = add(q, u) : f32[m, k]\n" + dot)), "contract_1");
    EXPECT_EQ(kernels(fuse_text(signature, "q = mul(x, u) : f32[m, k]\n p = exp(q) : f32[m, k]\n" + dot)), "map_1 contract_1");
}

TEST(transforms, fuse_leaves_a_contraction_a_result_to_walk) {
    const std::string
        signature = "(x: f32[m, k], v: f32[k, n]) -> (y: f32[m, n], top: f32[])",
        dot = "y = dot_general(x, v) {batch: [[], []], contract: [[1], [0]]} : f32[m, n]\n top = reduce_max(y) {axes: [0, 1]} : f32[]";
    EXPECT_EQ(kernels(fuse_text(signature, dot)), "contract_1");
    EXPECT_EQ(kernels(fuse_text("(x: f32[m, k], v: f32[k, n]) -> (top: f32[])", dot)), "contract_1 full_1");
}

/// The update of a weight reads each element anyway, before it overwrites the element.
TEST(transforms, fuse_reduces_a_weight_where_it_is_overwritten) {
    const std::string signature = "(x: f32[b, m], y: f32[b, n], w: f32[m, n] inout) -> (w = u, top: f32[], z: f32[b, n])",
                      dots = "z = dot_general(x, w) {batch: [[], []], contract: [[1], [0]]} : f32[b, n]\n"
                             "g = dot_general(x, y) {batch: [[], []], contract: [[0], [0]]} : f32[m, n]\n",
                      update = "u = sub(w, g) : f32[m, n]\n a = abs(w) : f32[m, n]\n top = reduce_max(a) {axes: [0, 1]} : f32[]";
    EXPECT_EQ(kernels(fuse_text(signature, dots + update)), "contract_1 contract_2");

    TargetFacts facts;
    facts.prepares_kernels = false;
    EXPECT_EQ(kernels(fuse_text(signature, dots + update, facts)), "contract_1 full_1 contract_2");
    const std::string of_new = "u = sub(w, g) : f32[m, n]\n a = abs(u) : f32[m, n]\n top = reduce_max(a) {axes: [0, 1]} : f32[]";
    EXPECT_EQ(kernels(fuse_text(signature, dots + of_new)), "contract_1 contract_2");
    EXPECT_EQ(kernels(fuse_text(signature, dots + of_new, facts)), "contract_1 contract_2 full_1");
    // The update needs the amax before it begins.
    EXPECT_EQ(kernels(fuse_text(signature, dots + "a = abs(w) : f32[m, n]\n top = reduce_max(a) {axes: [0, 1]} : f32[]\n"
                                                  "t = broadcast_in_dim(top) {dims: [], shape: [m, n]} : f32[m, n]\n"
                                                  "h = mul(g, t) : f32[m, n]\n u = sub(w, h) : f32[m, n]")),
              "contract_1 full_1 contract_2");
    // Packing reads an operand in another order than the epilogue.
    EXPECT_EQ(kernels(fuse_text("(x: f32[n, n], w: f32[n, n]) -> (z: f32[n, n], top: f32[])",
                                "z = dot_general(x, w) {batch: [[], []], contract: [[1], [0]]} : f32[n, n]\n a = abs(w) : f32[n, n]\n"
                                "top = reduce_max(a) {axes: [0, 1]} : f32[]")),
              "contract_1 full_1");
}

TEST(transforms, fuse_rounds_operands_where_they_are_packed) {
    const std::string signature = "(x: f32[m, k], v: f8_e4m3fn[k, n]) -> (y: f32[m, n])",
                      nodes = "q = convert_element_type(x) {dtype: f8_e4m3fn} : f8_e4m3fn[m, k]\n"
                              "p = convert_element_type(q) {dtype: f32} : f32[m, k]\n"
                              "w = convert_element_type(v) {dtype: f32} : f32[k, n]\n"
                              "y = dot_general(p, w) {batch: [[], []], contract: [[1], [0]]} : f32[m, n]";
    EXPECT_EQ(kernels(fuse_text(signature, nodes)), "contract_1");

    TargetFacts facts;
    facts.prepares_kernels = false;
    const Fusion fusion = fuse_text(signature, nodes, facts);
    EXPECT_EQ(kernels(fusion), "map_1 contract_1");
    EXPECT_EQ(to_string(fusion.program.type(fusion.program.nodes[0].results[0])), "f8_e4m3fn[m, k]");
    ASSERT_EQ(fusion.report.edges.size(), 1U);
    EXPECT_EQ(fusion.report.edges[0].reason,
              "an operand is computed while it is packed only if it is cheap, not rounded, and used by this matmul only");
}

TEST(transforms, fuse_rounds_an_overwritten_operand_before_it_is_overwritten) {
    const std::string signature = "(x: f32[m, m], w: f32[m, m] inout) -> (y: f32[m, m], w = u)",
                      nodes = "q = convert_element_type(w) {dtype: f8_e4m3fn} : f8_e4m3fn[m, m]\n"
                              "p = convert_element_type(q) {dtype: f32} : f32[m, m]\n"
                              "y = dot_general(x, p) {batch: [[], []], contract: [[1], [0]]} : f32[m, m]\n";
    EXPECT_EQ(kernels(fuse_text(signature, nodes + "u = exp(w) : f32[m, m]")), "contract_1 map_1");
    // A product that follows from the new array cannot read the old one.
    EXPECT_EQ(kernels(fuse_text("(x: f32[m, m], w: f32[m, m] inout) -> (y: f32[m, m], w = u)",
                                "u = exp(w) : f32[m, m]\n"
                                "q = convert_element_type(w) {dtype: f8_e4m3fn} : f8_e4m3fn[m, m]\n"
                                "p = convert_element_type(q) {dtype: f32} : f32[m, m]\n"
                                "y = dot_general(u, p) {batch: [[], []], contract: [[1], [0]]} : f32[m, m]")),
              "map_1 map_2 contract_1");
}

TEST(transforms, fuse_puts_rank_0_arithmetic_after_a_reduction_into_its_kernel) {
    const std::string nodes = "a = abs(x) : f32[m, n]\n top = reduce_max(a) {axes: [0, 1]} : f32[]\n"
                              "wide = convert_element_type(top) {dtype: f64} : f64[]\n r = div(wide, 448.0) : f64[]\n"
                              "scale = convert_element_type(r) {dtype: f32} : f32[]";
    EXPECT_EQ(kernels(fuse_text("(x: f32[m, n]) -> (scale: f32[])", nodes)), "full_1");
}

TEST(transforms, fuse_makes_one_scalar_kernel_a_level) {
    const std::string nodes = "p = mul(a, b) : f32[]\n q = exp(p) : f32[]\n r = exp(b) : f32[]\n"
                              "q_wide = broadcast_in_dim(q) {dims: [], shape: [n]} : f32[n]\n z = mul(x, q_wide) : f32[n]\n"
                              "s = reduce_sum(z) {axes: [0]} : f32[]\n t = mul(s, r) : f32[]\n y = add(t, a) : f32[]";
    EXPECT_EQ(kernels(fuse_text("(x: f32[n], a: f32[], b: f32[]) -> (y: f32[])", nodes)), "scalar_1 full_1 scalar_2");
}

TEST(transforms, fuse_repeats_cheap_rank_0_arithmetic_in_each_kernel_that_reads_it) {
    const std::string signature = "(x: f32[m, n], top: f32[]) -> (y: f32[m, n])",
                      scale = "power = pow2_down(top) : f32[]\n half = mul(power, 0.5) : f32[]\n s0 = div(half, 448.0) : f32[]\n",
                      use = "wide = broadcast_in_dim(s0) {dims: [], shape: [m, n]} : f32[m, n]\n y = mul(x, wide) : f32[m, n]";
    EXPECT_EQ(kernels(fuse_text(signature, scale + use)), "map_1");
    TargetFacts facts;
    facts.prepares_kernels = false;
    EXPECT_EQ(kernels(fuse_text(signature, scale + use, facts)), "scalar_1 map_1");
}

TEST(transforms, fuse_computes_long_rank_0_arithmetic_once) {
    std::string nodes;
    for (int i = 0; i < 1000; ++i) nodes += "s" + std::to_string(i + 1) + " = neg(s" + std::to_string(i) + ") : f32[]\n";
    nodes += "wide = broadcast_in_dim(s1000) {dims: [], shape: [m, n]} : f32[m, n]\n y = mul(x, wide) : f32[m, n]";
    const Fusion fusion = fuse_text("(x: f32[m, n], s0: f32[]) -> (y: f32[m, n])", nodes);
    EXPECT_EQ(kernels(fusion), "scalar_1 scalar_2 scalar_3 map_1");
    EXPECT_EQ(fusion.program.programs.back().nodes.size(), 2U);
}

TEST(transforms, fuse_cuts_long_scalar_arithmetic) {
    constexpr size_t count = 1000, most = 384;
    std::string nodes;
    for (size_t i = 0; i < count; ++i) nodes += "x" + std::to_string(i + 1) + " = exp(x" + std::to_string(i) + ") : f32[]\n";
    EXPECT_EQ(kernels(fuse_text("(x0: f32[]) -> (x1000: f32[], x10: f32[])", nodes)), "scalar_1 scalar_2 scalar_3");

    // What each result repeats counts too.
    std::string results;
    nodes.clear();
    for (size_t i = 0; i < 100; ++i) {
        const std::string n = std::to_string(i);
        nodes += "a" + n + " = mul(x" + n + ", 0.5) : f32[]\n b" + n + " = pow2_down(a" + n + ") : f32[]\n c" + n + " = max(b" + n +
                 ", 0.25) : f32[]\n";
        nodes += "y" + n + " = abs(c" + n + ") : f32[]\n";
        results += (i > 0 ? ", y" : "y") + n + ": f32[]";
    }
    std::string arguments;
    for (size_t i = 0; i < 100; ++i) arguments += (i > 0 ? ", x" : "x") + std::to_string(i) + ": f32[]";
    const Fusion fusion = fuse_text("(" + arguments + ") -> (" + results + ")", nodes);
    EXPECT_GE(fusion.program.programs.size(), 2U);
    for (const Program &kernel : fusion.program.programs) EXPECT_LE(kernel.nodes.size(), most) << kernel.name;
}

TEST(transforms, fuse_repeats_what_is_cheap_and_stores_what_is_not) {
    const auto nodes = [](const std::string &op) {
        return "c = " + op +
               "(v) : f32[n]\n c_wide = broadcast_in_dim(c) {dims: [1], shape: [m, n]} : f32[m, n]\n"
               "y = mul(x, c_wide) : f32[m, n]";
    };
    EXPECT_EQ(kernels(fuse_text("(x: f32[m, n], v: f32[n]) -> (y: f32[m, n])", nodes("neg"))), "map_1");
    EXPECT_EQ(kernels(fuse_text("(x: f32[m, n], v: f32[n]) -> (y: f32[m, n])", nodes("exp"))), "map_1 map_2");
}

TEST(transforms, fuse_merges_independent_kernels_of_one_kind) {
    const std::string nodes = "a = exp(x) : f32[m, n]\n b = exp(y) : f32[k]\n"
                              "c = reduce_sum(x) {axes: [0]} : f32[n]\n d = reduce_max(x) {axes: [0]} : f32[n]";
    EXPECT_EQ(kernels(fuse_text("(x: f32[m, n], y: f32[k]) -> (a: f32[m, n], b: f32[k], c: f32[n], d: f32[n])", nodes)), "map_1 column_1");
}

TEST(transforms, fuse_needs_two_kernels_for_chained_column_reductions) {
    const Fusion fusion =
        fuse_text("(x: f32[m, n]) -> (y: f32[n])",
                  "s = reduce_sum(x) {axes: [0]} : f32[n]\n s_wide = broadcast_in_dim(s) {dims: [1], shape: [m, n]} : f32[m, n]\n"
                  "d = sub(x, s_wide) : f32[m, n]\n d2 = mul(d, d) : f32[m, n]\n y = reduce_sum(d2) {axes: [0]} : f32[n]");
    EXPECT_EQ(kernels(fusion), "column_1 column_2");
    ASSERT_EQ(fusion.report.edges.size(), 1U);
    EXPECT_EQ(fusion.report.edges[0].values, std::vector<std::string>{"s"});
    EXPECT_EQ(fusion.report.edges[0].reason, "the first column reduction must end before the second begins");
}

TEST(transforms, fuse_tells_transpositions_from_maps) {
    const std::string move = "t = transpose(x) {permutation: [1, 0]} : f32[n, m]\n";
    EXPECT_EQ(kernels(fuse_text("(x: f32[m, n]) -> (y: f16[n, m])", move + "y = convert_element_type(t) {dtype: f16} : f16[n, m]")),
              "transpose_1");
    const std::string copy = "s = transpose(t) {permutation: [1, 0]} : f32[m, n]\n y = add(x, s) : f32[m, n]";
    EXPECT_EQ(kernels(fuse_text("(x: f32[m, n]) -> (y: f32[m, n])", move + copy)), "map_1");
}

TEST(transforms, fuse_shares_kernels_with_equal_text) {
    const std::string nodes = "y = exp(x) : f32[n]\n s = reduce_sum(y) {axes: [0]} : f32[]\n"
                              "s_wide = broadcast_in_dim(s) {dims: [], shape: [n]} : f32[n]\n z = mul(y, s_wide) : f32[n]\n"
                              "r = reduce_sum(z) {axes: [0]} : f32[]\n r_wide = broadcast_in_dim(r) {dims: [], shape: [n]} : f32[n]\n"
                              "u = mul(z, r_wide) : f32[n]";
    const Fusion fusion = fuse_text("(x: f32[n]) -> (y: f32[n], z: f32[n], u: f32[n])", nodes);
    EXPECT_EQ(kernels(fusion), "map_1 full_1 map_2 full_1 map_2");
    EXPECT_EQ(fusion.program.programs.size(), 3U);
}

TEST(transforms, fuse_limits_the_stages_of_a_kernel) {
    std::string nodes, results;
    for (int i = 0; i < 20; ++i) {
        const std::string number = std::to_string(i);
        nodes += "y" + number + " = reduce_sum(x" + number + ") {axes: [0]} : f32[n]\n";
        results += (i ? ", y" : "y") + number + ": f32[n]";
    }
    std::string arguments;
    for (int i = 0; i < 20; ++i) arguments += (i ? ", x" : "x") + std::to_string(i) + ": f32[m, n]";
    EXPECT_EQ(kernels(fuse_text("(" + arguments + ") -> (" + results + ")", nodes)), "column_1 column_1 column_2");
}

TEST(transforms, fuse_overwrites_in_place_only_what_nothing_else_reads) {
    const Fusion in_place = fuse_text("(x: f32[n], w: f32[n] inout) -> (w = v)", "v = sub(w, x) : f32[n]");
    const Program &kernel = in_place.program.programs[0];
    ASSERT_EQ(kernel.results.size(), 1U);
    EXPECT_EQ(kernel.value_name(kernel.arguments[kernel.results[0].argument].value), "a0");
    EXPECT_TRUE(kernel.arguments[0].inout);

    const Fusion moved = fuse_text("(w: f32[n, n] inout) -> (w = v)", "v = transpose(w) {permutation: [1, 0]} : f32[n, n]");
    EXPECT_EQ(kernels(moved), "transpose_1 map_1");
    for (const Program &program : moved.program.programs) EXPECT_EQ(program.results[0].argument, -1);
}

/// A step that changes some rows of a donated array touches these rows alone.
TEST(transforms, fuse_updates_a_part_of_an_argument_in_place) {
    const std::string signature = "(w: f32[n, 8] inout, i: i32[3, 1], u: f32[3, 8], k: i32[], v: f32[1, 8]) -> (w = r)",
                      attributes = " {update_window_dims: [1], inserted_window_dims: [0], scatter_dims_to_operand_dims: [0], "
                                   "operand_batching_dims: [], scatter_indices_batching_dims: [], mode: clip} : f32[n, 8]";
    const auto is_in_place = [](const Fusion &fusion) {
        const Program &kernel = fusion.program.programs.back();
        return kernels(fusion) == "scatter_1" && kernel.results[0].argument >= 0 && kernel.arguments[kernel.results[0].argument].inout;
    };
    const Fusion set = fuse_text(signature, "r = scatter(w, i, u)" + attributes);
    EXPECT_TRUE(is_in_place(set));
    EXPECT_EQ(to_string(set.report.kernels[0].bytes_read), "108"); // indices and updates
    EXPECT_EQ(to_string(set.report.kernels[0].bytes_written), "96");
    const Fusion add = fuse_text(signature, "r = scatter_add(w, i, u)" + attributes);
    EXPECT_TRUE(is_in_place(add));
    EXPECT_EQ(to_string(add.report.kernels[0].bytes_read), "204"); // and the old elements
    const std::string zero = "z = constant() {value: 0, dtype: i32} : i32[]\n";
    EXPECT_TRUE(is_in_place(fuse_text(signature, zero + "r = dynamic_update_slice(w, v, k, z) : f32[n, 8]")));

    // One update after the other, of one argument.
    const Fusion chain = fuse_text(signature, zero + "s = scatter(w, i, u)" + attributes +
                                                  "\n t = dynamic_update_slice(s, v, k, z) : f32[n, 8]\n"
                                                  "r = scatter_add(t, i, u)" +
                                                  attributes);
    EXPECT_EQ(kernels(chain), "scatter_1 scatter_2 scatter_3");
    for (const Program &kernel : chain.program.programs) EXPECT_TRUE(kernel.results[0].argument >= 0) << to_string(kernel);
    EXPECT_EQ(
        kernels(fuse_text("(w: f32[n, 8] inout, i: i32[3, 1], u: f32[3, 8]) -> (w = r, y: f32[n, 8])",
                          "s = scatter(w, i, u)" + attributes + "\n r = scatter_add(s, i, u)" + attributes + "\n y = exp(s) : f32[n, 8]")),
        "scatter_1 scatter_2 map_1");

    // Updates that read the array are computed before; a scatter whose updates read it at other indices needs a copy.
    EXPECT_EQ(
        kernels(fuse_text(signature, "t = exp(w) : f32[n, 8]\n s = slice(t) {start: [0, 0], limit: [3, 8], strides: [1, 1]} : f32[3, 8]\n"
                                     "r = scatter(w, i, s)" +
                                         attributes)),
        "map_1 scatter_1");
    EXPECT_EQ(kernels(fuse_text(signature, "s = slice(w) {start: [0, 0], limit: [3, 8], strides: [1, 1]} : f32[3, 8]\n"
                                           "r = scatter(w, i, s)" +
                                               attributes)),
              "scatter_1 map_1");
    // The old array is read after the update, so the result cannot have its memory yet.
    EXPECT_EQ(kernels(fuse_text("(w: f32[n, 8] inout, i: i32[3, 1], u: f32[3, 8]) -> (w = r, y: f32[n, 8])",
                                "r = scatter(w, i, u)" + attributes + "\n t = exp(r) : f32[n, 8]\n y = mul(t, w) : f32[n, 8]")),
              "scatter_1 map_1 map_2");
}

TEST(transforms, fuse_overwrites_a_scale_after_the_kernel_that_reads_it) {
    const std::string nodes =
        "a = abs(x) : f32[n]\n top = reduce_max(a) {axes: [0]} : f32[]\n t = mul(s, top) : f32[]\n r = div(s, t) : f32[]\n"
        "wide = broadcast_in_dim(r) {dims: [], shape: [n]} : f32[n]\n y = mul(x, wide) : f32[n]";
    const Fusion fusion = fuse_text("(x: f32[n], s: f32[] inout) -> (y: f32[n], s = t)", nodes);
    EXPECT_EQ(kernels(fusion), "full_1 map_1 scalar_1");
    for (const Result &result : fusion.program.programs[0].results) EXPECT_EQ(result.argument, -1);
}

TEST(transforms, fuse_reports_bytes_and_flops) {
    const Fusion fusion =
        fuse_text("(x: f32[m, k], w: f16[k, n]) -> (y: f32[m, n])",
                  "d = convert_element_type(w) {dtype: f32} : f32[k, n]\n"
                  "z = dot_general(x, d) {batch: [[], []], contract: [[1], [0]]} : f32[m, n]\n y = div(z, 3) : f32[m, n]");
    ASSERT_EQ(fusion.report.kernels.size(), 1U);
    const KernelReport &report = fusion.report.kernels[0];
    EXPECT_EQ(report.fused, (std::vector<std::string>{"dot_general", "div"}));
    EXPECT_EQ(report.recomputed, (std::vector<std::string>{"convert_element_type", "constant", "broadcast_in_dim"}));
    EXPECT_EQ(to_string(report.bytes_read), "4*k*m + 2*k*n");
    EXPECT_EQ(to_string(report.bytes_written), "4*m*n");
    EXPECT_EQ(to_string(report.flops), "2*k*m*n + k*n + 4*m*n");
}

} // namespace scalide
