// fuse: products of operands that are scaled by rows or blocks as calls of a library, and where their scales lie for it.
#include "interpret/interpret.h"
#include "ir/verify.h"
#include "support/programs/before_fusion.h"
#include "support/programs/zeros.h"
#include "transforms/analysis/operators.h"
#include "transforms/library/library_call.h"
#include "transforms/library/operand_scales.h"
#include <cmath>
#include <gtest/gtest.h>
#include <random>

namespace scalide {

namespace {

constexpr auto f32 = Dtype::f32, bf16 = Dtype::bf16, e4m3 = Dtype::f8_e4m3fn;
using enum ScaleLayout;

const std::vector<LibraryResult> results = {{f32, Overflow::format, {bf16}, {f32}}, {bf16, Overflow::format, {bf16}, {bf16}}};

/// f32 and f8 products, on sm_90 scales of rows and 128, on sm_100 MXFP8.
TargetFacts facts(std::vector<int> cards) {
    return {"cuda",
            {{"lib", f32, f32, {{f32, Overflow::format, {}, {f32}}}},
             {"lib", e4m3, e4m3, results, true, 16},
             {"lib",
              e4m3,
              e4m3,
              results,
              true,
              16,
              {{outer_vec, outer_vec}, {vec128, vec128}, {vec128, blk128x128}, {blk128x128, vec128}},
              {90}},
             {"lib", e4m3, e4m3, results, true, 16, {{vec32_ue8m0, vec32_ue8m0}}, {100, 120}}},
            std::move(cards)};
}

/// y = scaled_matmul of x[m, k] and w[n, k] in f8 with scales of these types.
std::string scaled_matmul(const std::string &m, const std::string &n, const std::string &k, const std::string &xs, const std::string &ws) {
    return "program p(x: f8_e4m3fn[" + m + ", " + k + "], w: f8_e4m3fn[" + n + ", " + k + "], xs: " + xs + ", ws: " + ws + ") -> (y: f32[" +
           m + ", " + n + "]) {\n  y = scaled_matmul(x, w, xs, ws)\n}\n";
}

/// The product of a program scaled as a map scales results: sum * xs[:, None] * ws[None, :], then bf16.
const std::string scaled_rows = R"(program p(x: f8_e4m3fn[32, 64], w: f8_e4m3fn[48, 64], xs: f32[32], ws: f32[48]) -> (y: bf16[32, 48]) {
  x32 = convert_element_type(x) {dtype: f32}
  w32 = convert_element_type(w) {dtype: f32}
  z = dot_general(x32, w32) {contract: [[1], [1]]}
  rows = broadcast_in_dim(xs) {dims: [0], shape: [32, 48]}
  columns = broadcast_in_dim(ws) {dims: [1], shape: [32, 48]}
  MULTIPLY
  y = convert_element_type(t) {dtype: bf16, overflow: format}
}
)";
std::string rows_multiplied(const std::string &lines) {
    std::string text = scaled_rows;
    return text.replace(text.find("MULTIPLY"), 8, lines);
}

std::vector<Array> random_arguments(const Program &program) {
    std::mt19937 random(7);
    std::vector<Array> arguments;
    for (const Argument &argument : program.arguments) {
        const Type &type = program.type(argument.value);
        Array array = zeros(type, {{"b", 48}});
        // Small whole numbers, and powers of two for scales: sums are exact.
        for (double &value : array.data)
            value = type.dtype == e4m3 ? static_cast<double>(random() % 7) - 3 : std::ldexp(1, static_cast<int>(random() % 4));
        arguments.push_back(array);
    }
    return arguments;
}

/// Where a library reads the scale of element (row, k) of an operand of `rows` rows and `length` elements a row: NVIDIA's cuBLAS manual.
size_t place_of(ScaleLayout layout, int64_t row, int64_t k, int64_t rows, int64_t length) {
    const auto up = [](int64_t number, int64_t multiple) { return (number + multiple - 1) / multiple; };
    switch (layout) {
    case outer_vec: return static_cast<size_t>(row);
    case vec128: return static_cast<size_t>(k / 128 * rows + row);
    case blk128x128: return static_cast<size_t>(row / 128 * (up(up(length, 128), 4) * 4) + k / 128);
    default: {
        const int64_t tile = row / 128 * up(length, 128) + k / 128, outer = row % 128, inner = k % 128 / 32;
        return static_cast<size_t>(tile * 512 + outer % 32 * 16 + outer / 32 * 4 + inner);
    }
    }
}

/// What the library makes of the only call of a fused program, from what the kernels before it stored.
struct LibraryRun {
    MatmulCall call;
    ScaleLayouts layouts;
    std::vector<double> sums; ///< [m, n]

    LibraryRun(const Program &fused, const std::vector<Array> &arguments) {
        const auto step = std::ranges::find_if(fused.nodes, [&](const Node &node) {
            return fused.program(node.attributes.at("program").word).attributes.contains("library");
        });
        const Program &kernel = fused.program(step->attributes.at("program").word);
        const std::vector<int> makers = producers(kernel);
        const MatmulCalls calls(kernel, [&](ValueId value) { return makers[value] < 0; });
        const auto dot = std::ranges::find(kernel.nodes, "dot_general", &Node::op);
        call = calls.with_packed_scales(calls.of(static_cast<int>(dot - kernel.nodes.begin())).back()).value();
        layouts = scale_layouts(kernel, call.form).value();
        const auto array = [&](ValueId value) {
            const auto argument = std::ranges::find(kernel.arguments, value, &Argument::value);
            Program part = fused;
            part.results = {{"part", step->operands[argument - kernel.arguments.begin()], false, -1}};
            return interpret(part, arguments, rules(), Mode::stored)[0].data;
        };
        const std::vector<double> lhs = array(call.form.lhs.value), rhs = array(call.form.rhs.value);
        const std::vector<double> lhs_scales = array(call.form.lhs.scales.value), rhs_scales = array(call.form.rhs.scales.value);
        const int64_t m = call.form.m.evaluate({{"b", 48}}), n = call.form.n.value(), length = call.form.k.value();
        for (int64_t i = 0; i < m; ++i)
            for (int64_t j = 0; j < n; ++j) {
                double sum = 0;
                for (int64_t k = 0; k < length; ++k)
                    sum += lhs[static_cast<size_t>(i * length + k)] * lhs_scales[place_of(layouts.lhs, i, k, m, length)] *
                           rhs[static_cast<size_t>(j * length + k)] * rhs_scales[place_of(layouts.rhs, j, k, n, length)];
                sums.push_back(sum);
            }
    }
};

size_t count_library_steps(const Program &fused) {
    return static_cast<size_t>(std::ranges::count_if(
        fused.nodes, [&](const Node &node) { return fused.program(node.attributes.at("program").word).attributes.contains("library"); }));
}

/// The program as its kernels compute it, and as a library that reads what they store, gives what it means.
void expect_call(const std::string &text, std::vector<int> cards, const ScaleLayouts &layouts, size_t steps) {
    SCOPED_TRACE(text);
    const Program program = before_fusion(text);
    EXPECT_EQ(scales_left_to_kernels(program, facts(cards)), std::vector<std::string>());
    const Program fused = fuse(program, facts(cards));
    verify(fused, "fuse");
    EXPECT_EQ(fused.nodes.size(), steps) << to_string(fused);
    ASSERT_EQ(count_library_steps(fused), 1u) << to_string(fused);
    const std::vector<Array> arguments = random_arguments(program);
    const std::vector<double> expected = interpret(program, arguments, rules(), Mode::stored)[0].data;
    EXPECT_EQ(interpret(fused, arguments, rules(), Mode::stored)[0].data, expected) << "the kernels";
    const LibraryRun library(fused, arguments);
    EXPECT_EQ(library.layouts, layouts);
    for (size_t i = 0; i < expected.size(); ++i)
        ASSERT_EQ(round_to(program.type(program.results[0].value).dtype, library.sums[i]), expected[i]) << "the library, element " << i;
}

/// Why scales are a kernel's; the product is there all the same.
std::string why_left(const std::string &text, std::vector<int> cards) {
    const Program program = before_fusion(text);
    const std::vector<std::string> left = scales_left_to_kernels(program, facts(cards));
    const Program fused = fuse(program, facts(cards));
    const std::vector<Array> arguments = random_arguments(program);
    EXPECT_EQ(interpret(fused, arguments, rules(), Mode::stored)[0].data, interpret(program, arguments, rules(), Mode::stored)[0].data);
    return left.size() == 1 ? left[0] : "nothing left";
}

} // namespace

TEST(scaled_calls, scales_of_rows_are_read_as_they_are) {
    const ScaleLayouts rows{outer_vec, outer_vec};
    expect_call(scaled_matmul("32", "48", "64", "f32[32, 1]", "f32[48, 1]"), {90}, rows, 1);
    expect_call(scaled_matmul("b", "48", "128", "f32[b, 1]", "f32[48, 1]"), {90}, rows, 1);
    expect_call(rows_multiplied("u = mul(z, rows)\n  t = mul(u, columns)"), {90}, rows, 1);
    expect_call(rows_multiplied("u = mul(z, columns)\n  t = mul(rows, u)"), {90}, rows, 1);
    expect_call(rows_multiplied("u = mul(rows, columns)\n  t = mul(z, u)"), {90}, rows, 1);
}

TEST(scaled_calls, scales_of_128_elements_lie_row_beside_row) {
    expect_call(scaled_matmul("32", "48", "256", "f32[32, 2]", "f32[48, 2]"), {90}, {vec128, vec128}, 3);
    expect_call(scaled_matmul("b", "48", "384", "f32[b, 3]", "f32[48, 3]"), {90}, {vec128, vec128}, 3);
}

TEST(scaled_calls, scales_of_32_elements_lie_in_tiles) {
    const ScaleLayouts tiles{vec32_ue8m0, vec32_ue8m0};
    expect_call(scaled_matmul("128", "256", "128", "f8_e8m0fnu[128, 4]", "f8_e8m0fnu[256, 4]"), {100}, tiles, 2);
    // Zeros fill tiles: 48 of 128 rows, 6 of 8 blocks.
    expect_call(scaled_matmul("48", "144", "192", "f8_e8m0fnu[48, 6]", "f8_e8m0fnu[144, 6]"), {100, 120}, tiles, 2);
}

TEST(scaled_calls, scales_of_128_rows_of_128_elements_begin_at_multiples_of_four) {
    const auto text = [](const std::string &m, const std::string &k, const std::string &xs, const std::string &ws) {
        return "program p(x: f8_e4m3fn[" + m + ", " + k + "], w: f8_e4m3fn[256, " + k + "], xs: f32" + xs + ", ws: f32" + ws +
               ") -> (y: f32[" + m + ", 256]) {\n  y = block_scaled_matmul(x, w, xs, ws)\n}\n";
    };
    expect_call(text("32", "512", "[32, 4]", "[2, 4]"), {90}, {vec128, blk128x128}, 2);
    expect_call(text("b", "384", "[b, 3]", "[2, 3]"), {90}, {vec128, blk128x128}, 3);
}

TEST(scaled_calls, a_batch_of_one_is_none) {
    const std::string text = "program p(x: f8_e4m3fn[1, 32, 64], w: f8_e4m3fn[1, 48, 64], xs: f32[1, 32, 1], ws: f32[1, 48, 1])"
                             " -> (y: f32[1, 32, 48]) {\n  y = scaled_matmul(x, w, xs, ws)\n}\n";
    expect_call(text, {90}, {outer_vec, outer_vec}, 1);
}

TEST(scaled_calls, an_operand_of_two_products_is_scaled_in_each) {
    const std::string text = R"(program p(x: f8_e4m3fn[32, 64], w: f8_e4m3fn[48, 64], v: f8_e4m3fn[16, 64], s: f32[32, 1], t: f32[48, 1],
    u: f32[16, 1]) -> (y: f32[32, 48], z: f32[32, 16]) {
  y = scaled_matmul(x, w, s, t)
  z = scaled_matmul(x, v, s, u)
}
)";
    const Program program = before_fusion(text), fused = fuse(program, facts({90}));
    EXPECT_EQ(fused.nodes.size(), 2u) << to_string(fused);
    EXPECT_EQ(count_library_steps(fused), 2u);
    const std::vector<Array> arguments = random_arguments(program);
    EXPECT_EQ(interpret(fused, arguments, rules(), Mode::stored)[1].data, interpret(program, arguments, rules(), Mode::stored)[1].data);
}

TEST(scaled_calls, what_no_library_does_has_a_reason) {
    const std::string rows = scaled_matmul("32", "48", "64", "f32[32, 1]", "f32[48, 1]");
    EXPECT_EQ(why_left(rows, {80, 90, 100}),
              "y: a generated kernel applies the scales on sm_80, sm_100, because outer_vec x outer_vec needs sm_90");
    EXPECT_EQ(why_left(rows_multiplied("u = mul(z, rows)\n  t = mul(u, columns)"), {100}),
              "z: a generated kernel applies the scales, because outer_vec x outer_vec needs sm_90");
    EXPECT_EQ(why_left(scaled_matmul("32", "48", "128", "f8_e8m0fnu[32, 4]", "f8_e8m0fnu[48, 4]"), {90}),
              "y: a generated kernel applies the scales, because vec32_ue8m0 x vec32_ue8m0 needs sm_100, sm_120");
    EXPECT_EQ(why_left(scaled_matmul("32", "48", "128", "f32[32, 2]", "f32[48, 2]"), {90}),
              "y: a generated kernel applies the scales, because cuBLASLt does not support blocks of 1 x 64 of f32 and 1 x 64 of f32");
    EXPECT_EQ(why_left(scaled_matmul("32", "48", "256", "f32[32, 1]", "f32[48, 2]"), {90}),
              "y: a generated kernel applies the scales, because cuBLASLt does not support blocks of 1 x 256 of f32 and 1 x 128 of f32");
    EXPECT_EQ(why_left(scaled_matmul("30", "48", "64", "f32[30, 1]", "f32[48, 1]"), {90}),
              "y: a generated kernel applies the scales, because m must be a multiple of 16, got 30");
    EXPECT_EQ(why_left(scaled_matmul("b", "48", "128", "f8_e8m0fnu[b, 4]", "f8_e8m0fnu[48, 4]"), {100}),
              "y: a generated kernel applies the scales, because the scale layout of vec32_ue8m0 x vec32_ue8m0 needs padding to whole "
              "tiles, which requires fixed extents");
}

} // namespace scalide
