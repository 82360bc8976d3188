#include "transforms/constants/split_constants.h"
#include "support.h"
#include "transforms/analysis/passes.h"
#include <gtest/gtest.h>

// Which nodes of a program with constants run once, and which run each time.
namespace scalide {

namespace {

SplitProgram split_of(const std::string &text) { return split_constants(expand(typed(text), rules())); }

/// Returns the operators of a program: "convert_element_type, dot_general".
std::string operators_of(const Program &program) {
    std::string words;
    for (const Node &node : program.nodes) words += (words.empty() ? "" : ", ") + node.op;
    return words;
}

/// Returns the operators of both programs: "prepare: transpose; main: dot_general".
std::string parts_of(const std::string &text) {
    const SplitProgram split = split_of(text);
    return (split.prepare ? "prepare: " + operators_of(*split.prepare) + "; " : "") + "main: " + operators_of(split.main);
}

} // namespace

TEST(transforms, nodes_of_constants_alone_run_once) {
    EXPECT_EQ(parts_of("(x: f32[4], w: f32[4] constant) -> (y: f32[4]) {\n e = exp(w)\n n = neg(e)\n y = mul(x, n)\n}"),
              "prepare: exp, neg; main: mul");
    EXPECT_EQ(parts_of("(x: f32[4], w: f32[4] constant) -> (y: f32[4]) {\n y = mul(x, w)\n}"), "prepare: ; main: mul") << "a copy";
    EXPECT_EQ(parts_of("(x: f32[4], w: f32[4]) -> (y: f32[4]) {\n e = exp(w)\n y = mul(x, e)\n}"), "main: exp, mul") << "no constant";
    EXPECT_EQ(parts_of("(x: f32[4], w: f32[4] constant) -> (y: f32[4]) {\n y = neg(x)\n}"), "main: neg") << "nothing reads the constant";
}

TEST(transforms, a_prepared_array_is_the_smaller_one) {
    EXPECT_EQ(parts_of("(x: f32[4], w: f32[4] constant) -> (y: f32[4]) {\n h = convert_element_type(w) {dtype: f16}\n"
                       " g = convert_element_type(x) {dtype: f16}\n m = mul(g, h)\n y = convert_element_type(m) {dtype: f32}\n}"),
              "prepare: convert_element_type; main: convert_element_type, mul, convert_element_type")
        << "narrowed once";
    EXPECT_EQ(parts_of("(x: f32[4], w: f16[4] constant) -> (y: f32[4]) {\n h = convert_element_type(w) {dtype: f32}\n y = mul(x, h)\n}"),
              "prepare: ; main: convert_element_type, mul")
        << "widened in each run";
    EXPECT_EQ(parts_of("(x: f32[8, 4], w: f32[4] constant) -> (y: f32[8, 4]) {\n e = exp(w)\n"
                       " b = broadcast_in_dim(e) {shape: [8, 4], dims: [1]}\n y = mul(x, b)\n}"),
              "prepare: exp; main: broadcast_in_dim, mul");
}

TEST(transforms, symbols_of_prepared_arrays_come_from_constants) {
    EXPECT_EQ(parts_of("(x: f32[m], w: f32[m] constant) -> (y: f32[m]) {\n e = exp(w)\n y = mul(x, e)\n}"), "prepare: exp; main: mul");
    const SplitProgram split = split_of("(x: f32[b, m], w: f32[m] constant) -> (y: f32[b, m]) {\n e = exp(w)\n"
                                        " s = broadcast_in_dim(e) {shape: [b, m], dims: [1]}\n n = neg(s)\n y = mul(x, n)\n}");
    ASSERT_TRUE(split.prepare);
    ASSERT_EQ(split.prepare->symbols.size(), 1u) << "b is no symbol of the constants";
    EXPECT_EQ(split.prepare->symbols[0].name, "m");
    EXPECT_EQ(operators_of(*split.prepare), "exp");
}

TEST(transforms, a_split_program_has_the_arguments_of_both) {
    const SplitProgram split = split_of("(x: f32[4], w: f32[4] constant) -> (y: f32[4], v: f32[4] = w) {\n e = exp(w)\n y = mul(x, e)\n}");
    ASSERT_TRUE(split.prepare);
    ASSERT_EQ(split.prepare->arguments.size(), 1u);
    EXPECT_EQ(split.prepare->arguments[0].supply, Supply::run);
    ASSERT_EQ(split.prepare->results.size(), 2u) << "w is a result, so a run reads it, too";
    std::vector<Supply> supplies;
    for (const Argument &argument : split.main.arguments) supplies.push_back(argument.supply);
    EXPECT_EQ(supplies, (std::vector{Supply::run, Supply::constant, Supply::prepared, Supply::prepared}));
    for (size_t i = 0; i < 2; i++)
        EXPECT_EQ(split.main.type(split.main.arguments[2 + i].value), split.prepare->type(split.prepare->results[i].value));
}

} // namespace scalide
