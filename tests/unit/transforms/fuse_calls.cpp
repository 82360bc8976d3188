#include "ir/text.h"
#include "ir/verify.h"
#include "transforms/matmul_form.h"
#include "transforms/passes.h"
#include <gtest/gtest.h>
#include <regex>

namespace scalide {

namespace {

/// A target whose library multiplies f32, f16 into f32 or f16, and f8 where it lies along k.
const TargetFacts facts = {"cuda",
                           {{"lib", Dtype::f32, Dtype::f32, {Dtype::f32}},
                            {"lib", Dtype::f16, Dtype::f16, {Dtype::f32, Dtype::f16}},
                            {"lib", Dtype::f8_e4m3fn, Dtype::f8_e4m3fn, {Dtype::f32}, true}}};

Program fused(const std::string &text, const TargetFacts &target = facts) {
    const Program program = parse_program(text, "test");
    verify(program, "");
    const Program result = fuse(program, target);
    verify(result, "fuse");
    return result;
}

/// The kernels that the library computes, as text.
std::string library_kernels(const Program &program) {
    std::string text;
    for (const Program &kernel : program.programs)
        if (kernel.attributes.contains("library")) text += to_string(kernel);
    return text;
}

std::vector<std::string> kinds(const Program &program) {
    std::vector<std::string> found;
    for (const Program &kernel : program.programs) found.push_back(kernel.attributes.at("kind").word);
    return found;
}

const std::string scaled_f8 = R"(program p(x: f8_e4m3fn[b, 64], w: f8_e4m3fn[64, 32], s: f32[]) -> (y: f32[b, 32]) {
  x32 = convert_element_type(x) {dtype: f32} : f32[b, 64]
  w32 = convert_element_type(w) {dtype: f32} : f32[64, 32]
  z = dot_general(x32, w32) {batch: [[], []], contract: [[1], [0]], preferred: f32} : f32[b, 32]
  wide = broadcast_in_dim(s) {dims: [], shape: [b, 32]} : f32[b, 32]
  scaled = mul(z, wide) : f32[b, 32]
  y = tanh(scaled) : f32[b, 32]
}
)";

} // namespace

TEST(fuse_calls, a_factor_joins_and_f8_operands_lie_along_k) {
    const Program program = fused(scaled_f8);
    EXPECT_EQ(library_kernels(program), "program contract_1 {kind: contract, library: lib} (a0: f8_e4m3fn[b, 64], a1: f8_e4m3fn[32, 64], "
                                        "a2: f32[]) -> (r0: f32[b, 32] = v4) {\n"
                                        "  v0 = convert_element_type(a0) {dtype: f32} : f32[b, 64]\n"
                                        "  v1 = convert_element_type(a1) {dtype: f32} : f32[32, 64]\n"
                                        "  v2 = dot_general(v0, v1) {batch: [[], []], contract: [[1], [1]], preferred: f32} : f32[b, 32]\n"
                                        "  v3 = broadcast_in_dim(a2) {dims: [], shape: [b, 32]} : f32[b, 32]\n"
                                        "  v4 = mul(v2, v3) : f32[b, 32]\n}\n");
    EXPECT_EQ(kinds(program), (std::vector<std::string>{"transpose", "contract", "map"}));
}

TEST(fuse_calls, without_a_row_products_are_kernels_of_ours) {
    EXPECT_EQ(library_kernels(fused(scaled_f8, {})), "");
    EXPECT_EQ(kinds(fused(scaled_f8, {})), (std::vector<std::string>{"contract"}));
}

TEST(fuse_calls, the_conversion_of_the_result_joins_where_the_library_stores_it) {
    const auto text = [](const std::string &dtype) {
        return std::regex_replace(std::string(R"(program p(x: f16[b, 64], w: f16[64, 32]) -> (y: DTYPE[b, 32]) {
  x32 = convert_element_type(x) {dtype: f32} : f32[b, 64]
  w32 = convert_element_type(w) {dtype: f32} : f32[64, 32]
  z = dot_general(x32, w32) {batch: [[], []], contract: [[1], [0]], preferred: f32} : f32[b, 32]
  y = convert_element_type(z) {dtype: DTYPE} : DTYPE[b, 32]
}
)"),
                                  std::regex("DTYPE"), dtype);
    };
    EXPECT_EQ(kinds(fused(text("f16"))), (std::vector<std::string>{"contract"}));
    EXPECT_EQ(kinds(fused(text("bf16"))), (std::vector<std::string>{"contract", "map"}));
}

TEST(fuse_calls, operands_that_are_computed_are_stored) {
    const Program program = fused(R"(program p(x: f32[b, 64], w: f32[64, 32]) -> (y: f32[b, 32]) {
  twice = add(x, x) : f32[b, 64]
  y = dot_general(twice, w) {batch: [[], []], contract: [[1], [0]], preferred: f32} : f32[b, 32]
}
)");
    EXPECT_EQ(kinds(program), (std::vector<std::string>{"map", "contract"}));
    EXPECT_NE(library_kernels(program), "");
}

TEST(fuse_calls, a_result_over_an_operand_waits_for_the_product) {
    const Program program = fused(R"(program p(w: f32[64, 64] inout, s: f32[]) -> (w = y) {
  z = dot_general(w, w) {batch: [[], []], contract: [[1], [0]], preferred: f32} : f32[64, 64]
  wide = broadcast_in_dim(s) {dims: [], shape: [64, 64]} : f32[64, 64]
  y = mul(z, wide) : f32[64, 64]
}
)");
    EXPECT_EQ(kinds(program), (std::vector<std::string>{"contract", "map"}));
    EXPECT_EQ(library_kernels(program).find("inout"), std::string::npos);
}

TEST(fuse_calls, a_factor_that_waits_for_another_kernel_stays_apart) {
    const Program program = fused(R"(program p(x: f32[64, 64], w: f32[64, 64] inout) -> (y: f32[64, 64], w = next) {
  z = dot_general(x, w) {batch: [[], []], contract: [[1], [0]], preferred: f32} : f32[64, 64]
  next = tanh(w) : f32[64, 64]
  norm = reduce_max(next) {axes: [0, 1]} : f32[]
  wide = broadcast_in_dim(norm) {dims: [], shape: [64, 64]} : f32[64, 64]
  y = mul(z, wide) : f32[64, 64]
}
)");
    EXPECT_EQ(library_kernels(program).find("mul"), std::string::npos);
    EXPECT_NE(library_kernels(program), "");
}

TEST(fuse_calls, arrays_in_other_orders_keep_their_strides) {
    const Program program = parse_program(R"(program p(x: f32[m, b, 64], w: f32[b, 32, 64]) -> (y: f32[b, m, 32]) {
  y = dot_general(x, w) {batch: [[1], [0]], contract: [[2], [2]], preferred: f32} : f32[b, m, 32]
}
)",
                                          "test");
    const auto form = matmul_form(program, program.nodes[0]);
    ASSERT_TRUE(form);
    EXPECT_EQ(to_string(form->lhs.leading), to_string(Extent(64) * program.type(program.arguments[0].value).shape[1]));
    EXPECT_EQ(to_string(form->lhs.batch_stride), "64");
    EXPECT_EQ(to_string(form->rhs.leading), "64");
    EXPECT_EQ(to_string(form->rhs.batch_stride), "2048");
    EXPECT_TRUE(form->lhs.k_contiguous && form->rhs.k_contiguous);
}

TEST(fuse_calls, a_batch_in_the_last_axis_is_no_row_of_matrices) {
    const Program program = parse_program(R"(program p(x: f32[m, 64, b], w: f32[b, 32, 64]) -> (y: f32[b, m, 32]) {
  y = dot_general(x, w) {batch: [[2], [0]], contract: [[1], [2]], preferred: f32} : f32[b, m, 32]
}
)",
                                          "test");
    EXPECT_FALSE(matmul_form(program, program.nodes[0]));
}

} // namespace scalide
