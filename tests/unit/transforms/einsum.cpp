#include "interpret/interpret.h"
#include "ir/text.h"
#include "support.h"
#include "transforms/analysis/passes.h"
#include <gtest/gtest.h>

// The operator einsum in text. tests/unit/frontend/einsum.cpp compares all kinds of subscripts with the definition.
namespace scalide {
namespace {

Program inlined_einsum(const std::string &text) { return inline_calls(infer_types(parse_program(text, "t.scl"), rules()), rules()); }

} // namespace

TEST(transforms, einsum_becomes_a_matmul) {
    const Program program = inlined_einsum("program p(x: f32[b, 2, 3], w: f32[3, 4]) -> (y: f32[b, 4, 2]) {\n"
                                           "  scope \"layer\" {\n    y = einsum(x, w) {subscripts: \"bti,io->bot\"}\n  }\n}\n");
    ASSERT_EQ(program.nodes.size(), 2U);
    EXPECT_EQ(program.nodes[0].op, "dot_general");
    EXPECT_EQ(program.nodes[0].scope, "layer");
    EXPECT_EQ(program.nodes[1].op, "transpose");
}

TEST(transforms, einsum_in_a_differentiated_sub_program) {
    const Program program = inlined_einsum("program loss(x: f32[n, m], w: f32[m]) -> (s: f32[]) {\n"
                                           "  s = einsum(x, w, w) {subscripts: \"nm,m,m->\"}\n}\n"
                                           "program p(x: f32[n, m], w: f32[m]) -> (g: f32[m]) {\n"
                                           "  g = grad(x, w) {program: loss, wrt: [w]}\n}\n");
    const std::vector<Array> got = interpret(program, {{Dtype::f32, {2, 2}, {1, 2, 3, 5}}, {Dtype::f32, {2}, {1, 3}}}, rules(), Mode::real);
    EXPECT_EQ(got[0].data, (std::vector<double>{2 * 4 * 1, 2 * 7 * 3}));
}

TEST(transforms, einsum_errors_name_the_line) {
    const auto message = [](const std::string &node) {
        return error_of([&] { inlined_einsum("program p(x: f32[2, 3], w: f32[3, 4]) -> (y: f32[2, 4]) {\n  y = " + node + "\n}\n"); });
    };
    EXPECT_EQ(message("einsum(x, w)"), "t.scl:2:3: einsum.subscripts: must be a text, got no subscripts. Name each axis by a letter: "
                                       "{subscripts: \"ij,jk->ik\"}");
    EXPECT_EQ(message("einsum(x, w) {subscripts: 2}"),
              "t.scl:2:3: einsum.subscripts: must be a text, got 2. Name each axis by a letter: {subscripts: \"ij,jk->ik\"}");
    EXPECT_EQ(message("einsum() {subscripts: \"->\"}"), "t.scl:2:3: einsum: the number of operands must be at least 1, got 0");
    EXPECT_EQ(message("einsum(x, w) {subscripts: \"ij,ik->jk\"}"),
              "t.scl:2:3: einsum.subscripts: axes with the same letter must have the same extent, got 2 and 3 for 'i'. Broadcast axes of "
              "extent 1 first, or use another letter");
}

} // namespace scalide
