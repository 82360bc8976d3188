#include "interpret/interpret.h"
#include "ir/text.h"
#include "support.h"
#include "support/programs/zeros.h"
#include "transforms/pipeline.h"
#include <algorithm>
#include <gtest/gtest.h>

// States of a policy in loops and branches: a history moves by one a run, and holds the largest amax of all steps.

namespace scalide {

namespace {

/// The amax of the last two runs of each operand, and a scale from it.
Policy delayed() {
    return parse_policy("policy: delayed\n"
                        "state:\n"
                        "  - {name: amax_history, per: tensor, dtype: f32, shape: [2], initial: 0, next: update_amax_history}\n"
                        "  - {name: scale, per: tensor, dtype: f32, initial: 1, next: {delayed_scale: {history: amax_history}}}\n"
                        "rules:\n"
                        "  - {op: dot_general, operand: any, insert: [{scaled_by: {s: scale}}], store: f8_e4m3fn}\n",
                        "delayed.yaml");
}

Array filled(const Type &type, double value) {
    Array array = zeros(type, {});
    std::ranges::fill(array.data, value);
    return array;
}

/// Compiles a program under the policy and runs it on arguments of equal elements. Returns the first element of each state by name.
std::map<std::string, double> states_after(const std::string &text, const std::map<std::string, double> &arguments, const Array &xs = {}) {
    CompileOptions options;
    options.policy = delayed();
    options.unroll = Unroll::none;
    const Program made = compile(parse_program(text, "t.scl"), rules(), options);
    std::vector<Array> inputs;
    for (const Argument &argument : made.arguments) {
        const std::string &name = made.value_name(argument.value);
        const auto given = arguments.find(name);
        const double value = argument.initial ? static_cast<double>(*argument.initial) : given == arguments.end() ? 0 : given->second;
        inputs.push_back(name == "xs" && !xs.data.empty() ? xs : filled(made.type(argument.value), value));
    }
    const std::vector<Array> results = interpret(made, inputs, rules(), Mode::stored);
    std::map<std::string, double> states;
    for (size_t i = 0; i < results.size(); i++)
        if (made.results[i].argument >= 0 && made.arguments[size_t(made.results[i].argument)].initial)
            states[made.results[i].name] = results[i].data[0];
    return states;
}

const std::string state_body = "      p = dot_general(x, w) {contract: [[1], [0]]} : f32[2, 2]\n      next = add(h, p) : f32[2, 2]\n";

std::string scan_of(int length) {
    const std::string steps = std::to_string(length);
    return "program p(w: f32[2, 2], h0: f32[2, 2], xs: f32[" + steps +
           ", 2, 2]) -> (h: f32[2, 2]) {\n  h = scan(w, h0, xs) {length: " + steps +
           "} : f32[2, 2] with\n    body(w: f32[2, 2], h: f32[2, 2] inout, x: f32[2, 2] each) -> (h = next) {\n" + state_body +
           "    }\n}\n";
}

} // namespace

TEST(transforms, states_of_loops_hold_the_largest_step) {
    Array xs{Dtype::f32, {3, 2, 2}, {1, 1, 1, 1, 1, -8, 1, 1, 2, 2, 2, 2}};
    const auto states = states_after(scan_of(3), {{"w", 0.5}}, xs);
    EXPECT_EQ(states, (std::map<std::string, double>{{"w.amax_history", 0.5},
                                                     {"w.scale", static_cast<double>(0.5F / 448)},
                                                     {"x.amax_history", 8},
                                                     {"x.scale", static_cast<double>(8.F / 448)}}));
}

TEST(transforms, states_of_no_steps_stay) {
    std::string text = scan_of(3);
    text.replace(text.find("(w: f32"), 1, "(n: i32[], ");
    text.replace(text.find("scan(w"), 5, "scan(n, ");
    text.replace(text.find("{length: 3"), 10, "{count: true, length: 3");
    const auto states = states_after(text, {{"w", 0.5}, {"n", 0}});
    EXPECT_EQ(states.at("x.amax_history"), 0);
    EXPECT_EQ(states.at("x.scale"), 1);
}

/// The state of the branch that does not run stays.
TEST(transforms, states_of_branches) {
    const std::string branch = "(w: f32[2, 2], a: f32[2, 2]) -> (y: f32[2, 2]) {\n";
    const std::string text =
        "program p(w: f32[2, 2], a: f32[2, 2], go: bool[]) -> (y: f32[2, 2]) {\n  y = cond(go, w, a) : f32[2, 2] with\n"
        "    yes" +
        branch +
        "      big = mul(a, 3.0) : f32[2, 2]\n      y = dot_general(big, w) {contract: [[1], [0]]}\n    },\n"
        "    no" +
        branch + "      small = mul(a, 0.25) : f32[2, 2]\n      y = dot_general(small, w) {contract: [[1], [0]]}\n    }\n}\n";
    for (const bool goes : {true, false}) {
        const auto states = states_after(text, {{"w", 0.5}, {"a", 2}, {"go", goes}});
        EXPECT_EQ(states.at("big.amax_history"), goes ? 6 : 0);
        EXPECT_EQ(states.at("small.amax_history"), goes ? 0 : 0.5);
        EXPECT_EQ(states.at("w.amax_history"), 0.5);
    }
}

TEST(transforms, states_of_nested_loops) {
    const std::string text = "program p(w: f32[2, 2], h0: f32[2, 2], xs: f32[3, 2, 2, 2]) -> (h: f32[2, 2]) {\n"
                             "  h = scan(w, h0, xs) {length: 3} : f32[2, 2] with\n"
                             "    outer(w: f32[2, 2], h: f32[2, 2] inout, part: f32[2, 2, 2] each) -> (h = made) {\n"
                             "      made = scan(w, h, part) {length: 2} : f32[2, 2] with\n"
                             "        body(w: f32[2, 2], h: f32[2, 2] inout, x: f32[2, 2] each) -> (h = next) {\n" +
                             state_body + "        }\n    }\n}\n";
    Array xs{Dtype::f32, {3, 2, 2, 2}, std::vector<double>(24, 1)};
    xs.data[13] = -5;
    const auto states = states_after(text, {{"w", 0.25}}, xs);
    EXPECT_EQ(states.at("x.amax_history"), 5);
    EXPECT_EQ(states.at("x.scale"), static_cast<double>(5.F / 448));
    EXPECT_EQ(states.at("w.amax_history"), 0.25);
}

TEST(transforms, tests_of_loops_have_no_states) {
    const std::string text =
        "program p(w: f32[2, 2], h0: f32[2, 2]) -> (h: f32[2, 2]) {\n  h = while(w, h0) : f32[2, 2] with\n"
        "    test(w: f32[2, 2], h: f32[2, 2]) -> (more: bool[]) {\n      q = dot_general(h, w) {contract: [[1], [0]]}\n"
        "      m = reduce_max(q) {axes: [0, 1]}\n      more = lt(m, 5.0)\n    },\n"
        "    body(w: f32[2, 2], h: f32[2, 2] inout) -> (h = next) {\n      next = mul(h, 2.0)\n    }\n}\n";
    EXPECT_EQ(
        error_of([&] { states_after(text, {}); }),
        "t.scl:2:3: the test of this loop computes 'h', which needs a 'amax_history' of the policy (delayed.yaml:3), but a test has no "
        "next value. Compute the array in the body, or use a policy without state for it");
}

} // namespace scalide
