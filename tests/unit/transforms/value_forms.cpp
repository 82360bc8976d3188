#include "transforms/forms/value_forms.h"
#include "support.h"
#include "transforms/analysis/passes.h"
#include <gtest/gtest.h>

// Forms of a program for values of its symbols: which there are, and that a caller can bind them.
namespace scalide {

namespace {

/// Returns the forms of a program in base operators: "b=1 t=1; b=64; ".
std::string forms_of(const std::string &text) {
    std::string words;
    for (const Extent::Bindings &values : value_forms(expand(typed(text), rules()))) {
        std::string form;
        for (const auto &[symbol, value] : values) form += (form.empty() ? "" : " ") + symbol + "=" + std::to_string(value);
        words += form + "; ";
    }
    return words;
}

std::string matmul(const std::string &symbols, const std::string &lhs, const std::string &rhs, const std::string &result) {
    return symbols + "(x: f32[" + lhs + "], w: f32[" + rhs + "]) -> (y: f32[" + result +
           "]) {\n y = dot_general(x, w) {contract: [[1], [0]]}\n}";
}

} // namespace

TEST(transforms, one_row_or_column_of_a_matmul_is_a_form) {
    EXPECT_EQ(forms_of(matmul("", "b, 64", "64, 8", "b, 8")), "b=1; ");
    EXPECT_EQ(forms_of(matmul("", "16, 64", "64, n", "16, n")), "n=1; ");
    EXPECT_EQ(forms_of(matmul("", "16, k", "k, 8", "16, 8")), "") << "the summed extent";
    EXPECT_EQ(forms_of(matmul("", "2*b, 64", "64, 8", "2*b, 8")), "") << "never one row";
    EXPECT_EQ(forms_of(matmul("[b in 2..64] ", "b, 64", "64, 8", "b, 8")), "") << "outside the bounds";
    EXPECT_EQ(forms_of(matmul("[b step 2] ", "b, 64", "64, 8", "b, 8")), "") << "no multiple";
    EXPECT_EQ(forms_of("(x: f32[b, 64]) -> (y: f32[b, 64]) {\n y = exp(x)\n}"), "") << "no matmul";
    EXPECT_EQ(forms_of("(x: f32[b, t, 64], w: f32[64, 8]) -> (y: f32[b, t, 8]) {\n y = dot_general(x, w) {contract: [[2], [0]]}\n}"),
              "b=1 t=1; ");
}

TEST(transforms, likely_values_are_forms) {
    EXPECT_EQ(forms_of(matmul("[b likely [8, 64]] ", "b, 64", "64, 8", "b, 8")), "b=8; b=64; b=1; ");
    EXPECT_EQ(forms_of(matmul("[k likely [8]] ", "16, k", "k, 8", "16, 8")), "") << "only rows and columns change the loops";
    EXPECT_EQ(forms_of("[b likely [8]] (x: f32[b, 64], w: f32[64, 8] inout) -> (y: f32[b, 8], w = v) {\n"
                       " y = dot_general(x, w) {contract: [[1], [0]]}\n v = neg(w)\n}"),
              "b=8; ")
        << "a program with state has no other forms";
}

TEST(transforms, likely_values_of_several_symbols_are_one_form) {
    const std::string body = " y = dot_general(x, w) {contract: [[2], [0]]}\n}";
    const std::string head = "(x: f32[b, t, 64], w: f32[64, 8]) -> (y: f32[b, t, 8]) {\n";
    EXPECT_EQ(forms_of("[b likely [2, 4], t likely [128]] " + head + body), "b=2 t=128; b=4 t=128; b=1 t=1; b=2; b=4; t=128; ");
    EXPECT_EQ(forms_of("[b likely [2], t] " + head + body), "b=1 t=1; b=2; ") << "t has no likely value";
    EXPECT_EQ(forms_of("[b likely [2], n likely [8]] (x: f32[b, 64], w: f32[64, n]) -> (y: f32[b, n]) {\n"
                       " y = dot_general(x, w) {contract: [[1], [0]]}\n}"),
              "b=2; n=8; b=1; n=1; ")
        << "rows and columns are counted by one symbol each";
}

TEST(transforms, a_form_has_the_interface_of_its_program) {
    const Program general = expand(typed(matmul("", "b, 64", "64, 8", "b, 8")), rules());
    const std::optional<Program> form = with_interface_of(general, simplify(expand(with_values(general, {{"b", 1}}), rules()), rules()));
    ASSERT_TRUE(form.has_value());
    EXPECT_EQ(form->symbols, general.symbols);
    EXPECT_EQ(to_string(form->type(form->arguments[0].value)), "f32[b, 64]");
    EXPECT_EQ(to_string(form->type(form->results[0].value)), "f32[b, 8]");
    Program other = general;
    other.arguments.pop_back();
    EXPECT_FALSE(with_interface_of(general, other).has_value());
}

} // namespace scalide
