// factor_scales: scales that are constant along the contracted axis are applied after the matmul, if cuBLASLt multiplies the data alone.
#include "transforms/library/factor_scales.h"
#include "interpret/interpret.h"
#include "ir/verify.h"
#include "support/programs/before_fusion.h"
#include "support/programs/zeros.h"
#include <cmath>
#include <gtest/gtest.h>

namespace scalide {

namespace {

constexpr auto f32 = Dtype::f32, bf16 = Dtype::bf16, e4m3 = Dtype::f8_e4m3fn;
using enum ScaleLayout;

/// Matmuls in f8, on sm_90 with scales per row, and matmuls of bf16 with f8.
TargetFacts facts(std::vector<int> cards) {
    const std::vector<LibraryResult> results = {{f32, Overflow::format, {}, {}}};
    LibraryProduct mixed{"lib", bf16, e4m3, results};
    mixed.through = bf16;
    return {"cuda",
            {{"lib", e4m3, e4m3, results, true, 16}, {"lib", e4m3, e4m3, results, true, 16, {{outer_vec, outer_vec}}, {90}}, mixed},
            std::move(cards)};
}

/// The operands of the product and what follows it, as operators.
std::string shape_of(const Program &program) {
    std::string text;
    const std::vector<int> makers = producers(program);
    for (const Node &node : program.nodes) {
        if (node.op != "dot_general") continue;
        for (const ValueId operand : node.operands) text += (makers[operand] < 0 ? "argument" : program.nodes[makers[operand]].op) + " ";
    }
    int muls = 0;
    for (const Node &node : program.nodes) muls += node.op == "mul";
    return text + std::to_string(muls);
}

/// Returns the program factored for these GPUs. Its results must be the same up to roundings of f32.
Program factored(const std::string &text, std::vector<int> cards) {
    SCOPED_TRACE(text);
    const Program program = before_fusion(text), made = factor_scales(program, facts(std::move(cards)));
    verify(made, "simplify_3");
    std::vector<Array> arguments;
    for (const Argument &argument : program.arguments) {
        Array &array = arguments.emplace_back(zeros(program.type(argument.value), {{"b", 32}}));
        for (size_t i = 0; i < array.data.size(); ++i)
            array.data[i] = round_to(array.dtype, 0.7 + 0.11 * static_cast<double>(i * 37 % 23) - 0.05 * static_cast<double>(i % 7));
    }
    const std::vector<double> expected = interpret(program, arguments, rules(), Mode::real)[0].data;
    const std::vector<double> got = interpret(made, arguments, rules(), Mode::real)[0].data;
    EXPECT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-12 * std::abs(expected[i])) << "element " << i;
    return made;
}

std::string rows(const std::string &m, const std::string &k) {
    return "program p(x: f8_e4m3fn[" + m + ", " + k + "], w: f8_e4m3fn[48, " + k + "], xs: f32[" + m + ", 1], ws: f32[48, 1]) -> (y: f32[" +
           m + ", 48]) {\n  y = scaled_matmul(x, w, xs, ws)\n}\n";
}

/// w[OPERAND] times `s`, broadcast along `dims`, multiplied with x.
std::string weights(const std::string &x, const std::string &w, const std::string &s, const std::string &dims, int contract) {
    const std::string shape = w.substr(w.find('['));
    return "program p(x: " + x + ", w: " + w + ", s: " + s + ") -> (y: f32[b, 48]) {\n  x32 = convert_element_type(x) {dtype: f32}\n" +
           "  w32 = convert_element_type(w) {dtype: f32}\n  s32 = convert_element_type(s) {dtype: f32}\n  wide = broadcast_in_dim(s32) "
           "{dims: " +
           dims + ", shape: " + shape + "}\n" + "  t = mul(w32, wide)\n  y = dot_general(x32, t) {contract: [[1], [" +
           std::to_string(contract) + "]]}\n}\n";
}

const std::string codes = "convert_element_type convert_element_type ";

} // namespace

TEST(factor_scales, scales_of_rows_stand_behind_the_sum) {
    EXPECT_EQ(shape_of(factored(rows("32", "64"), {80, 89, 100})), codes + "2");
    EXPECT_EQ(shape_of(factored(rows("b", "64"), {100})), codes + "2");
    EXPECT_EQ(shape_of(factored(rows("32", "64"), {90})), "reshape reshape 2") << "the library takes them";
}

TEST(factor_scales, of_one_operand_they_are_factored_too) {
    EXPECT_EQ(shape_of(factored(weights("f8_e4m3fn[b, 64]", "f8_e4m3fn[48, 64]", "f32[48]", "[0]", 1), {90})), codes + "1");
    EXPECT_EQ(shape_of(factored(weights("f8_e4m3fn[b, 64]", "f8_e4m3fn[64, 48]", "f32[48]", "[1]", 0), {90})), codes + "1");
    EXPECT_EQ(shape_of(factored(weights("bf16[b, 64]", "f8_e4m3fn[64, 48]", "bf16[48]", "[1]", 0), {90})), codes + "1") << "weights alone";
    EXPECT_EQ(shape_of(factored(weights("f8_e4m3fn[b, 64]", "f8_e4m3fn[48, 64]", "f32[]", "[]", 1), {90})), codes + "1") << "a number";
}

TEST(factor_scales, what_varies_along_the_sum_stays) {
    EXPECT_EQ(shape_of(factored(weights("f8_e4m3fn[b, 64]", "f8_e4m3fn[48, 64]", "f32[64]", "[1]", 1), {90})),
              "convert_element_type mul 1");
    EXPECT_EQ(shape_of(factored(weights("f8_e4m3fn[b, 64]", "f8_e4m3fn[64, 48]", "f32[64]", "[0]", 0), {90})),
              "convert_element_type mul 1");
    EXPECT_EQ(shape_of(factored(weights("f16[b, 64]", "f8_e4m3fn[48, 64]", "f32[48]", "[0]", 1), {90})), "convert_element_type mul 1")
        << "no library multiplies the codes";
}

} // namespace scalide
