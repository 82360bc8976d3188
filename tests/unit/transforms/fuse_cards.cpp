// fuse_for_cards: one program for each group of GPUs that agree on the matmuls that cuBLASLt computes.
#include "interpret/interpret.h"
#include "support/programs/before_fusion.h"
#include "support/programs/zeros.h"
#include "transforms/forms/cards.h"
#include <gtest/gtest.h>

namespace scalide {

namespace {

constexpr auto f32 = Dtype::f32, bf16 = Dtype::bf16, e4m3 = Dtype::f8_e4m3fn;
using enum ScaleLayout;

/// bf16 products, and of f8: on sm_80 as bf16, elsewhere of f8, on sm_90 with scales of rows, too.
TargetFacts facts(std::vector<int> cards) {
    const std::vector<LibraryResult> results = {{f32, Overflow::format, {}, {}}};
    LibraryProduct widened{"lib", e4m3, e4m3, results}, rows{"lib", e4m3, e4m3, results, true, 16, {{outer_vec, outer_vec}}, {90}};
    widened.cards = {80};
    widened.through = bf16;
    return {"cuda", {{"lib", bf16, bf16, results}, widened, {"lib", e4m3, e4m3, results, true, 16}, rows}, std::move(cards)};
}

std::vector<std::vector<int>> cards_of(const std::vector<CardProgram> &programs) {
    std::vector<std::vector<int>> cards;
    for (const CardProgram &program : programs) cards.push_back(program.cards);
    return cards;
}

/// Numbers from -6 to 6 in the dtypes of the arguments.
std::vector<Array> ramps(const Program &program) {
    std::vector<Array> arrays;
    for (const Argument &argument : program.arguments) {
        Array &array = arrays.emplace_back(zeros(program.type(argument.value), {{"b", 48}}));
        for (size_t i = 0; i < array.data.size(); ++i) array.data[i] = round_to(array.dtype, 0.03 * static_cast<double>(i % 401) - 6);
    }
    return arrays;
}

std::string operands_of_products(const Program &fused) {
    std::string text;
    for (const Program &kernel : fused.programs)
        if (kernel.attributes.contains("library"))
            for (const Argument &argument : kernel.arguments) text += to_string(kernel.type(argument.value)) + " ";
    return text;
}

const std::string plain = R"(program p(x: f8_e4m3fn[b, 64], w: f8_e4m3fn[32, 64]) -> (y: f32[b, 32]) {
  x32 = convert_element_type(x) {dtype: f32}
  w32 = convert_element_type(w) {dtype: f32}
  y = dot_general(x32, w32) {contract: [[1], [1]]}
}
)";
const std::string scaled = R"(program p(x: f8_e4m3fn[32, 64], w: f8_e4m3fn[48, 64], xs: f32[32, 1], ws: f32[48, 1]) -> (y: f32[32, 48]) {
  y = scaled_matmul(x, w, xs, ws)
}
)";

} // namespace

TEST(fuse_cards, cards_that_multiply_alike_have_one_program) {
    const auto variants = [](const std::string &text, const std::vector<int> &cards) {
        const Program program = before_fusion(text);
        return cards_of(fuse_for_cards(program, fuse(program, facts(cards)), facts(cards)));
    };
    using Cards = std::vector<std::vector<int>>;
    EXPECT_EQ(variants(plain, {80, 89, 90, 100, 120}), (Cards{{80}}));
    EXPECT_EQ(variants(scaled, {80, 89, 90, 100, 120}), (Cards{{80}, {90}}));
    EXPECT_EQ(variants(scaled, {89, 100}), Cards()) << "alike";
    EXPECT_EQ(variants(scaled, {90}), Cards()) << "the program is for this card";
    EXPECT_EQ(variants("program p(x: f32[b]) -> (y: f32[b]) {\n  y = exp(x)\n}\n", {80, 90}), Cards()) << "no product";
}

TEST(fuse_cards, operands_are_widened_exactly) {
    const Program program = before_fusion(plain), fused = fuse(program, facts({80, 90}));
    const std::vector<CardProgram> variants = fuse_for_cards(program, fused, facts({80, 90}));
    ASSERT_EQ(variants.size(), 1u);
    EXPECT_EQ(operands_of_products(fused), "f8_e4m3fn[b, 64] f8_e4m3fn[32, 64] ");
    EXPECT_EQ(operands_of_products(variants[0].fused), "bf16[b, 64] bf16[32, 64] ");
    const std::vector<Array> arguments = ramps(program);
    EXPECT_EQ(interpret(variants[0].fused, arguments, rules(), Mode::stored)[0].data,
              interpret(program, arguments, rules(), Mode::stored)[0].data);
}

/// An operand that is rounded to f8 is rounded before it is widened; what two products read is widened once.
TEST(fuse_cards, what_is_rounded_stays_rounded) {
    const Program program =
        before_fusion(R"(program p(x: f32[48, 64], w: f8_e4m3fn[32, 64], v: f8_e4m3fn[16, 64]) -> (y: f32[48, 32], z: f32[48, 16]) {
  q = convert_element_type(x) {dtype: f8_e4m3fn}
  q32 = convert_element_type(q) {dtype: f32}
  w32 = convert_element_type(w) {dtype: f32}
  v32 = convert_element_type(v) {dtype: f32}
  y = dot_general(q32, w32) {contract: [[1], [1]]}
  z = dot_general(q32, v32) {contract: [[1], [1]]}
}
)");
    const Program fused = fuse(program, facts({80}));
    EXPECT_EQ(operands_of_products(fused), "bf16[48, 64] bf16[32, 64] bf16[48, 64] bf16[16, 64] ");
    ASSERT_EQ(fused.nodes.size(), 3u) << to_string(fused);
    for (const ValueId operand : fused.nodes[0].results) EXPECT_EQ(fused.type(operand).dtype, bf16);
    EXPECT_EQ(fused.nodes[0].results.size(), 3u);
    const std::vector<Array> arguments = ramps(program);
    for (const size_t result : {0, 1})
        EXPECT_EQ(interpret(fused, arguments, rules(), Mode::stored)[result].data,
                  interpret(program, arguments, rules(), Mode::stored)[result].data);
}

} // namespace scalide
