#include "ir/evaluation.h"
#include "ir/regions.h"
#include "support.h"
#include "transforms/analysis/passes.h"
#include "transforms/pipeline.h"
#include <algorithm>
#include <gtest/gtest.h>

// Which functions need fewer bits than f32 has.
namespace scalide {

namespace {

/// Returns the functions on which the result `y` of a program depends, with their accuracy: "exp f32, tanh bf16".
std::string functions_of_y(const Program &program) {
    std::vector<bool> marked(program.values.size(), false);
    marked[std::ranges::find(program.results, "y", &Result::name)->value] = true;
    mark_sources(program, marked);
    std::string words;
    for (const Node &node : program.nodes) {
        if (!marked[node.results[0]] || base_operator(node.op).evaluate_reduced == nullptr) continue;
        const auto accuracy = node.attributes.find(accuracy_attribute);
        words += (words.empty() ? "" : ", ") + node.op + " " + (accuracy == node.attributes.end() ? "f32" : accuracy->second.word);
    }
    return words;
}

std::string chosen(const std::string &text) { return functions_of_y(choose_accuracy(typed(text))); }

/// Returns the choice for `value` of the lines, which is stored in a format.
std::string chosen_for(const std::string &lines, const std::string &value, const std::string &dtype) {
    return chosen("(x: f32[8], z: f32[8], p: bool[8]) -> (y: " + dtype + "[8]) {\n" + lines + " y = convert_element_type(" + value +
                  ") {dtype: " + dtype + "}\n}");
}

} // namespace

TEST(transforms, functions_need_the_bits_of_their_format) {
    EXPECT_EQ(chosen_for(" e = exp(x)\n", "e", "bf16"), "exp bf16");
    EXPECT_EQ(chosen_for(" e = erf(x)\n", "e", "f8_e4m3fn"), "erf bf16");
    EXPECT_EQ(chosen_for(" e = tanh(x)\n", "e", "f16"), "tanh f16");
    EXPECT_EQ(chosen_for(" e = exp(x)\n", "e", "f8_e8m0fnu"), "exp f32") << "a scale";
    EXPECT_EQ(chosen_for(" e = logistic(x)\n m = mul(e, x)\n n = neg(m)\n", "n", "bf16"), "logistic bf16");
    EXPECT_EQ(chosen_for(" a = logistic(x)\n b = tanh(z)\n m = mul(a, b)\n", "m", "bf16"), "logistic bf16, tanh bf16");
    EXPECT_EQ(chosen_for(" e = exp(x)\n f = is_finite(e)\n m = min(e, z)\n s = select_n(f, z, m)\n", "s", "bf16"), "exp bf16");
}

TEST(transforms, functions_stay_exact_where_errors_could_grow) {
    EXPECT_EQ(chosen_for(" e = exp(x)\n m = sub(e, z)\n", "m", "bf16"), "exp f32") << "a sum may cancel";
    EXPECT_EQ(chosen_for(" e = exp(x)\n l = lt(e, z)\n m = select_n(l, e, z)\n", "m", "bf16"), "exp f32") << "a comparison";
    EXPECT_EQ(chosen_for(" e = exp(x)\n f = exp(e)\n", "f", "bf16"), "exp f32, exp bf16") << "the operand of a function";
    EXPECT_EQ(chosen_for(" a = exp(x)\n b = tanh(z)\n c = erf(x)\n m = mul(a, b)\n n = mul(m, c)\n", "n", "bf16"),
              "exp f32, tanh f32, erf f32")
        << "three errors";
    EXPECT_EQ(chosen_for(" e = exp(x)\n s = reduce_sum(e) {axes: [0]}\n b = broadcast_in_dim(s) {dims: [], shape: [8]}\n m = div(e, b)\n",
                         "m", "bf16"),
              "exp f32")
        << "the sum needs the function in f32 anyway";
    EXPECT_EQ(chosen("(x: f32[]) -> (y: bf16[]) {\n e = exp(x)\n y = convert_element_type(e) {dtype: bf16}\n}"), "exp f32") << "rank 0";
}

// The bits of y are those of its functions, whatever else reads them.
TEST(transforms, another_reader_changes_no_accuracy) {
    const std::string lines = " e = logistic(x)\n m = mul(e, x)\n y = convert_element_type(m) {dtype: bf16}\n",
                      alone = chosen("(x: f32[8]) -> (y: bf16[8]) {\n" + lines + "}");
    EXPECT_EQ(alone, "logistic bf16");
    for (const char *reader : {"add(e, x)", "mul(m, e)", "neg(m)", "cumsum(m) {axis: 0}", "tanh(e)"})
        EXPECT_EQ(chosen("(x: f32[8]) -> (y: bf16[8], z: f32[8]) {\n" + lines + " z = " + reader + "\n}"), alone) << reader;
    EXPECT_EQ(chosen("(x: f32[8]) -> (y: bf16[8], z: f16[8]) {\n" + lines + " z = convert_element_type(e) {dtype: f16}\n}"), alone);
    EXPECT_EQ(chosen("(x: f32[8]) -> (z: bf16[8], y: f32[8]) {\n e = exp(x)\n z = convert_element_type(e) {dtype: bf16}\n y = neg(e)\n}"),
              "exp f32")
        << "the other reader keeps f32";
}

// Only what depends on the function is computed for the rounding.
TEST(transforms, operands_beside_a_function_are_shared) {
    EXPECT_EQ(body(choose_accuracy(typed("(x: f32[8]) -> (y: bf16[8], z: f32[8]) {\n n = neg(x)\n e = logistic(n)\n m = mul(e, n)\n"
                                         " y = convert_element_type(m) {dtype: bf16}\n z = exp(m)\n}"))),
              "n = neg(x) : f32[8]\ne = logistic(n) : f32[8]\nm = mul(e, n) : f32[8]\ne1 = logistic(n) {accuracy: bf16} : f32[8]\n"
              "m1 = mul(e1, n) : f32[8]\ny = convert_element_type(m1) {dtype: bf16} : bf16[8]\n"
              "z = exp(m) : f32[8]\n");
}

TEST(transforms, bodies_of_loops_have_their_own_accuracies) {
    const Program program =
        choose_accuracy(typed("(x: f32[4, 8]) -> (y: bf16[4, 8]) {\n  y = map(x) {length: 4} : bf16[4, 8] with\n"
                              "    body(r: f32[8] each) -> (z: bf16[8]) {\n      e = exp(r)\n      z = convert_element_type(e) {dtype: "
                              "bf16}\n    }\n}\n"));
    EXPECT_EQ(program.nodes[0].regions[0]->nodes[0].attributes.at(accuracy_attribute).word, "bf16");
}

TEST(transforms, exact_arithmetic_and_gpus_have_no_accuracies) {
    const auto compiled = [](const std::string &settings, bool is_gpu) {
        CompileOptions options;
        options.facts.is_gpu = is_gpu;
        const Program program =
            typed(settings + "(x: f32[8]) -> (y: bf16[8]) {\n e = exp(x)\n y = convert_element_type(e) {dtype: bf16}\n}");
        return functions_of_y(to_base_operators(program, rules(), options));
    };
    EXPECT_EQ(compiled("", false), "exp bf16");
    EXPECT_EQ(compiled("", true), "exp f32");
    EXPECT_EQ(compiled(" {arithmetic: exact}", false), "exp f32");
}

} // namespace scalide
