#include "ir/text.h"
#include "support.h"
#include "transforms/spec/invariants.h"
#include <gtest/gtest.h>

// A program that breaks what has to hold between two passes is named with its reason. That passes keep it is seen wherever they run.
namespace scalide {
namespace {

struct BrokenProgram {
    const char *name, *program, *why;
    Invariant invariant;
};

const BrokenProgram broken_programs[] = {
    {"unknown_attribute", "(x: f32[4]) -> (y: f32[4]) {\n y = abs(x) {axis: 0} : f32[4]\n}",
     "unknown attribute 'abs.axis'. 'abs' has no attributes", Invariant::typed},
    {"wrong_type", "(x: f32[4]) -> (y: f32[5]) {\n y = abs(x) : f32[5]\n}", "abs.y: must have the type f32[4], got f32[5]",
     Invariant::typed},
    {"narrow_arithmetic", "(x: f16[4]) -> (y: f16[4]) {\n y = abs(x) : f16[4]\n}", "abs.y: must compute in 32 bits, got x: f16[4]",
     Invariant::wide},
    {"scaled_argument", "(x: f16[4] scaled) -> (y: f32[4]) {\n y = convert_element_type(x) {dtype: f32} : f32[4]\n}",
     "p.x: must be a plain array or a part, got scaled", Invariant::no_scaled},
    {"scaled_result", "(x: f32[4]) -> (y: f32[4] scaled) {\n y = abs(x) : f32[4]\n}", "p.y: must be a plain array or a part, got scaled",
     Invariant::no_scaled},
    {"composite", "(x: f32[4]) -> (y: f32[4]) {\n y = relu(x) : f32[4]\n}", "relu.y: must be a base operator, got relu", Invariant::base},
    {"many_free_axes",
     "(x: f32[2, 3, 4], y: f32[4, 5]) -> (z: f32[2, 3, 5]) {\n z = dot_general(x, y) {contract: [[2], [0]], batch: [[], []]} : f32[2, 3, "
     "5]\n}",
     "dot_general.z: must have at most one axis of each kind, got 2 free", Invariant::base},
    {"operator_beside_kernels", "(x: f32[4]) -> (y: f32[4]) {\n y = abs(x) : f32[4]\n}", "abs.op: must be a call of a kernel, got abs",
     Invariant::kernels},
};

TEST(transforms, spec_says_what_is_broken) {
    for (const BrokenProgram &broken : broken_programs) {
        SCOPED_TRACE(broken.name);
        const Program program = parse_program("program p " + std::string(broken.program), "p.scl");
        try {
            check_invariant(broken.invariant, program, rules(), "simplify");
            ADD_FAILURE() << "nothing is wrong";
        } catch (const InternalError &error) {
            EXPECT_NE(std::string(error.what()).find(broken.why), std::string::npos) << error.what();
            EXPECT_TRUE(std::string(error.what()).starts_with("internal error: after simplify: ")) << error.what();
        }
    }
}

TEST(transforms, spec_refuses_calls) {
    const std::string text = "program f (x: f32[4]) -> (y: f32[4]) {\n y = abs(x) : f32[4]\n}\n"
                             "program p (x: f32[4]) -> (y: f32[4]) {\n y = call(x) {program: f} : f32[4]\n}";
    const Program program = parse_program(text, "p.scl");
    EXPECT_THROW(check_invariant(Invariant::no_calls, program, rules(), "inline_calls"), InternalError);
}

TEST(transforms, spec_refuses_kernels_of_no_kind) {
    const std::string text = "program k {kind: map} (x: f32[4]) -> (s: f32[]) {\n s = reduce_sum(x) {axes: [0]} : f32[]\n}\n"
                             "program p (x: f32[4]) -> (s: f32[]) {\n s = call(x) {program: k} : f32[]\n}";
    try {
        check_invariant(Invariant::kernels, parse_program(text, "p.scl"), rules(), "fuse");
        FAIL() << "a map that folds";
    } catch (const InternalError &error) {
        EXPECT_STREQ(error.what(),
                     "internal error: after fuse: k: reduce_sum.s: must be elementwise, movement or a source, got reduce_sum");
    }
}

} // namespace
} // namespace scalide
