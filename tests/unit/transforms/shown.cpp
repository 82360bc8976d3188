#include "interpret/interpret.h"
#include "ir/text.h"
#include "support.h"
#include "transforms/pipeline.h"
#include <algorithm>
#include <gtest/gtest.h>

// Values that debug_callback shows: they are stored, under their labels, and are no results of the program.

namespace scalide {

namespace {

bool is_stored(const Program &fused, const std::string &name) {
    return std::ranges::any_of(fused.nodes, [&](const Node &call) {
        return std::ranges::any_of(call.results, [&](ValueId result) { return fused.value_name(result) == name; });
    });
}

} // namespace

TEST(transforms, shown_values_are_stored) {
    const Program program = parse_program("program p(x: f32[n]) -> (y: f32[n]) {\n"
                                          "  h = exp(x)\n  s = debug_print(h) {label: hidden}\n  y = add(s, s)\n}\n",
                                          "t.scl");
    const Program fused = compile(program, rules(), {});
    EXPECT_TRUE(is_stored(fused, "hidden")) << to_string(fused);
    EXPECT_EQ(fused.nodes.size(), 1u) << "beside what it is fused with";
    ASSERT_EQ(fused.results.size(), 1u);
    EXPECT_EQ(fused.results[0].name, "y");
    const std::vector<Array> got = interpret(fused, {{Dtype::f32, {2}, {0, 1}}}, rules(), Mode::real);
    EXPECT_EQ(got[0].data[0], 2);
}

TEST(transforms, shown_arrays_have_two_parts) {
    const Program program = parse_program("program p(x: f16[n] scaled) -> (y: f16[n] scaled) {\n"
                                          "  s = debug_callback(x) {label: seen}\n  y = mul(s, s)\n}\n",
                                          "t.scl");
    const Program fused = compile(program, rules(), {});
    EXPECT_TRUE(is_stored(fused, "seen.data")) << to_string(fused);
    EXPECT_TRUE(is_stored(fused, "seen.scale")) << to_string(fused);
    EXPECT_EQ(fused.results.size(), 2u);
}

TEST(transforms, shown_values_and_results_may_have_any_name) {
    const Program program = parse_program("program p(x: f32[n]) -> (\"shown.0\": f32[n] = y) {\n"
                                          "  h = exp(x)\n  s = debug_print(h) {label: \"h \\\"1\\\"\"}\n"
                                          "  t = debug_print(s) {label: \"\"}\n  y = add(t, t)\n}\n",
                                          "t.scl");
    CompileOptions options;
    options.checks_types = true;
    const Program fused = compile(program, rules(), options);
    EXPECT_TRUE(is_stored(fused, "h \"1\"")) << to_string(fused);
    EXPECT_EQ(fused.results[0].name, "shown.0");
}

TEST(transforms, shown_arguments_results_and_cotangents) {
    const Program program = parse_program("program loss(x: f32[n]) -> (l: f32[]) {\n"
                                          "  s = debug_print_grad(x) {label: slope}\n  q = mul(s, s)\n  l = reduce_sum(q) {axes: [0]}\n}\n"
                                          "program p(x: f32[n]) -> (l: f32[], g: f32[n], z: f32[n]) {\n"
                                          "  z = debug_callback(x) {label: input}\n"
                                          "  l, g = value_and_grad(z) {program: loss, wrt: [x]}\n}\n",
                                          "t.scl");
    const Program fused = compile(program, rules(), {});
    for (const char *label : {"slope", "input"}) EXPECT_TRUE(is_stored(fused, label)) << label << "\n" << to_string(fused);
    const std::vector<Array> got = interpret(fused, {{Dtype::f32, {2}, {1, 3}}}, rules(), Mode::real);
    EXPECT_EQ(got[1].data, (std::vector<double>{2, 6}));
}

} // namespace scalide
