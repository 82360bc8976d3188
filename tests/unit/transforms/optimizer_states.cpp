#include "ir/text.h"
#include "support.h"
#include "transforms/numerics/model_values.h"
#include <gtest/gtest.h>

// Which inout arguments the role optimizer_state has. Names do not matter.

namespace scalide {

namespace {

using Words = std::vector<std::string>;

Words states_of(const std::string &text) {
    const Program program = typed(text);
    Words names;
    for (const ValueId value : optimizer_states(program, PolicyRoles(program, rules()))) names.push_back(program.value_name(value));
    return names;
}

/// A step whose gradient is g. `inouts` and `results` declare further arrays, and `updates` computes them and v, the new value of w.
Words states_of_step(const std::string &inouts, const std::string &results, const std::string &updates) {
    return states_of("(x: f32[4], w: f32[4] inout, " + inouts + ") -> (loss: f32[], w = v, " + results +
                     ") {\n p = mul(x, w)\n loss = reduce_sum(p) {axes: [0]}\n g = mul(x, 2) cotangent\n" + updates + "\n}");
}

} // namespace

TEST(transforms, moments_are_optimizer_states) {
    EXPECT_EQ(states_of_step("a: f32[4] inout, b: f32[4] inout", "a = m, b = n",
                             " ma = mul(a, 0.9)\n m = add(ma, g)\n mb = mul(b, 0.99)\n s = mul(g, g)\n n = add(mb, s)\n"
                             " r = sqrt(n)\n u = div(m, r)\n v = sub(w, u)"),
              (Words{"a", "b"}));
}

TEST(transforms, averages_and_statistics_are_no_optimizer_states) {
    EXPECT_EQ(states_of_step("average: f32[4] inout", "average = e",
                             " v = sub(w, g)\n d = sub(v, average)\n part = mul(d, 0.01)\n e = add(average, part)"),
              Words{});
    EXPECT_EQ(
        states_of_step("largest: f32[] inout", "largest = l", " v = sub(w, g)\n now = reduce_max(x) {axes: [0]}\n l = max(now, largest)"),
        Words{});
}

/// The parameter is a rounded copy of the array that the optimizer updates.
TEST(transforms, master_copies_are_no_optimizer_states) {
    EXPECT_EQ(states_of("(x: f16[4], w: f16[4] inout, master: f32[4] inout) -> (loss: f16[], w = v, master = m) {\n p = mul(x, w)\n"
                        " loss = reduce_sum(p) {axes: [0]}\n g = mul(x, 2) cotangent\n wide = convert_element_type(g) {dtype: f32}\n"
                        " m = sub(master, wide)\n v = convert_element_type(m) {dtype: f16}\n}"),
              Words{});
}

TEST(transforms, state_of_a_model_is_no_optimizer_state) {
    EXPECT_EQ(states_of_step("h: f32[4] inout", "h = k", " k = add(h, x)\n v = sub(w, g)"), Words{});
    EXPECT_EQ(states_of("(x: f32[4], h: f32[4] inout) -> (y: f32[4], h = k) {\n k = add(h, x)\n y = mul(k, 2)\n}"), Words{});
}

} // namespace scalide
