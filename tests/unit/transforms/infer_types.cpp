#include "ir/text.h"
#include "support.h"
#include "transforms/analysis/passes.h"
#include <gtest/gtest.h>

namespace scalide {

namespace {

std::string error(const std::string &text) {
    return error_of([&] { infer_types(parse_program(text, "t.scl"), rules()); });
}

} // namespace

TEST(transforms, infer_types_fills_in_types) {
    EXPECT_EQ(body(typed("(x: f32[b, 64], w: f32[64, 10]) -> (s: f32[]) {\n z = dot_general(x, w) {contract: [[1], [0]]}\n"
                         " s = reduce_sum(z) {axes: [-1, 0]}\n}")),
              "z = dot_general(x, w) {batch: [[], []], contract: [[1], [0]], preferred: f32} : f32[b, 10]\n"
              "s = reduce_sum(z) {axes: [0, 1]} : f32[]\n");
}

TEST(transforms, infer_types_broadcasts_scalars) {
    EXPECT_EQ(body(typed("(x: f32[4], s: f32[]) -> (y: f32[4]) {\n a = exp(x)\n y = mul(a, s)\n}")),
              "a = exp(x) : f32[4]\nbroadcast_in_dim = broadcast_in_dim(s) {dims: [], shape: [4]} : f32[4]\n"
              "y = mul(a, broadcast_in_dim) : f32[4]\n");
}

TEST(transforms, infer_types_adapts_numbers) {
    const std::string text = body(typed("(x: i32[4]) -> (y: bool[4]) {\n a = neg(x)\n y = eq(a, 3)\n}"));
    EXPECT_NE(text.find("constant() {dtype: i32, value: 3} : i32[]"), std::string::npos) << text;
}

TEST(transforms, infer_types_checks) {
    EXPECT_EQ(error("program p(x: f32[4], y: f32[5]) -> (z: f32[4]) {\n  z = add(x, y)\n}\n"),
              "t.scl:2:3: add: operands must have the same shape, got x: f32[4], y: f32[5]");
    EXPECT_EQ(error("program p(x: f32[4]) -> (z: f32[5]) {\n  z = exp(x) : f32[5]\n}\n"),
              "t.scl:2:3: exp.z: must have the type that follows from the operands, f32[4], got f32[5]. Remove the type, or convert the "
              "value with convert_element_type");
    EXPECT_EQ(error("program p(x: f32[4]) -> (z: f32[4]) {\n  z = frobnicate(x)\n}\n"),
              "t.scl:2:3: unknown operator 'frobnicate'. Add a rule file, see docs/reference/rules.md");
    EXPECT_EQ(error("program p(x: f32[4]) -> (z: f32[4]) {\n  z = tie_in(x, x)\n}\n"),
              "t.scl:2:3: unknown operator 'tie_in'. JAX has removed this operator: use its second operand");
    EXPECT_EQ(error("program f(x: f32[4]) -> (z: f32[4]) {\n  z = exp(x)\n}\n"
                    "program p(x: f32[4]) -> (z: f32[4]) {\n  z = grad(x) {program: f, wrt: [x]}\n}\n"),
              "t.scl:5:3: grad.program: must have exactly one float scalar result (the loss), got 0 in f");
    EXPECT_EQ(error("program f(x: f32[4]) -> (z: f32[4]) {\n  z = exp(x)\n}\n"
                    "program p(x: f32[5]) -> (z: f32[4]) {\n  z = call(x) {program: f}\n}\n"),
              "t.scl:5:3: call.operands: must match the arguments of f, f32[4], got f32[5]");
}

TEST(transforms, infer_types_leaves_what_has_types) {
    const Program once = typed("(p: bool[], x: f32[n, 4], s: f32[]) -> (z: f32[n, 4]) {\n y = select_n(p, x, s)\n z = mul(y, 2)\n}");
    EXPECT_EQ(body(once), "broadcast_in_dim = broadcast_in_dim(s) {dims: [], shape: [n, 4]} : f32[n, 4]\n"
                          "y = select_n(p, x, broadcast_in_dim) : f32[n, 4]\n"
                          "z$0 = constant() {dtype: f32, value: 2.0} : f32[]\n"
                          "broadcast_in_dim1 = broadcast_in_dim(z$0) {dims: [], shape: [n, 4]} : f32[n, 4]\n"
                          "z = mul(y, broadcast_in_dim1) : f32[n, 4]\n");
    EXPECT_EQ(to_string(infer_types(once, rules())), to_string(once));
}

TEST(transforms, calls_take_the_symbols_of_the_caller) {
    const std::string square =
        "program square(x: f32[n, 2*m]) -> (y: f32[2*m, n]) {\n t = transpose(x) {permutation: [1, 0]}\n y = mul(t, t)\n}\n";
    const auto results = [&](const std::string &caller) {
        const Program inlined = inline_calls(infer_types(parse_program(square + caller, "t.scl"), rules()), rules());
        return to_string(inlined.type(inlined.results[0].value));
    };
    EXPECT_EQ(results("program p(x: f32[b, 6]) -> (y: f32[6, b]) {\n y = call(x) {program: square}\n}"), "f32[6, b]");
    EXPECT_EQ(results("program p(x: f32[n, 4*s]) -> (y: f32[4*s, n]) {\n y = call(x) {program: square}\n}"), "f32[4*s, n]");
    EXPECT_EQ(error(square + "program p(x: f32[b, 7]) -> (y: f32[7, b]) {\n  y = call(x) {program: square}\n}\n"),
              "t.scl:6:3: call.operands: must match the arguments of square, f32[b, 2*m], got f32[b, 7]");
    const std::string bounded = "program half [n in 2..64 step 2](x: f32[n]) -> (s: f32[]) {\n s = reduce_sum(x) {axes: [0]}\n}\n";
    EXPECT_EQ(error(bounded + "program p [b in 4..32 step 4](x: f32[b]) -> (s: f32[]) {\n  s = call(x) {program: half}\n}\n"), "no error");
    EXPECT_EQ(error(bounded + "program p(x: f32[b]) -> (s: f32[]) {\n  s = call(x) {program: half}\n}\n"),
              "t.scl:5:3: call.operands: the extent must be within the bounds of symbol n of half, got b");
    EXPECT_EQ(error(bounded + "program p(x: f32[9]) -> (s: f32[]) {\n  s = call(x) {program: half}\n}\n"),
              "t.scl:5:3: call.operands: the extent must be within the bounds of symbol n of half, got 9");
}

} // namespace scalide
