#include "kernels/contract_cases.h"
#include <gtest/gtest.h>
#include <set>

// Narrow operands and what an object asks for, on the host and as pairs of bf16 products (vdpbf16ps), which a host with AVX-512 bf16 can
// run whatever its own path is.

namespace scalide::contract_test {
namespace {

bool host_has_bf16() {
    const Halide::Target host = Halide::get_host_target();
    return host.has_feature(Halide::Target::AVX512_Zen4) || host.has_feature(Halide::Target::AVX512_SapphireRapids);
}

struct FormatCase {
    std::string lhs, rhs;
    friend void PrintTo(const FormatCase &each, std::ostream *out) { *out << each.lhs << " by " << each.rhs; }
};

class Formats : public testing::TestWithParam<FormatCase> {
protected:
    void expect_products(const Halide::Target &target) {
        for (int order = 0; order < 4; order++) {
            Form form;
            form.lhs_transposed = order & 1;
            form.rhs_transposed = order & 2;
            form.lhs_dtype = GetParam().lhs;
            form.rhs_dtype = GetParam().rhs;
            CompiledKernel kernel(parse_program(form.text(), "k"), target);
            for (const auto &[m, n, k] :
                 std::vector<std::array<int64_t, 3>>{{1, 1, 1}, {17, 15, 3}, {64, 64, 64}, {65, 70, 33}, {300, 40, 17}, {3, 200, 0}}) {
                expect_product(kernel, form, {1, m, n, k, form.lhs_transposed, form.rhs_transposed}, {{"m", m}, {"n", n}, {"k", k}});
            }
        }
    }
};

TEST_P(Formats, host) { expect_products(kernel_target()); }

TEST_P(Formats, pairs) {
    if (!host_has_bf16()) {
        GTEST_SKIP() << "this machine has no vdpbf16ps";
    }
    expect_products(pairs_target());
}

INSTANTIATE_TEST_SUITE_P(contract, Formats,
                         testing::Values(FormatCase{"bf16", "bf16"}, FormatCase{"f16", "f16"}, FormatCase{"f8_e4m3fn", "f8_e4m3fn"},
                                         FormatCase{"f8_e4m3fn", "f8_e5m2"}, FormatCase{"f8_e5m2", "bf16"}, FormatCase{"f32", "f16"},
                                         FormatCase{"bf16", "i8"}, FormatCase{"f32", "i8"}),
                         [](const auto &info) { return info.param.lhs + "_" + info.param.rhs; });

/// How often the assembly of the kernel for pairs_target() names an instruction.
size_t count_instructions(const std::string &text, const std::string &name) {
    return count_words(assembly_of(parse_program(text, "k"), pairs_target()), name);
}

size_t count_instructions(const Form &form, const std::string &name) { return count_instructions(form.text(), name); }

TEST(contract, bf16_operands_use_the_dot_instruction_where_it_is_fast) {
    Form form;
    form.lhs_dtype = form.rhs_dtype = "bf16";
    EXPECT_NE(count_instructions(form, "vdpbf16ps"), 0u);
    form.rhs_dtype = "i8";
    EXPECT_NE(count_instructions(form, "vdpbf16ps"), 0u);
    form.rhs_dtype = "f16";
    EXPECT_EQ(count_instructions(form, "vdpbf16ps"), 0u);
}

/// The left operand is what `lines` compute from x, y and a constant, in f32.
std::string chosen(const std::string &lines) {
    return R"(program k {kind: contract} (x: bf16[m, 64], y: bf16[m, 64], w: bf16[64, n]) -> (z: f32[m, n]) {
  xw = convert_element_type(x) {dtype: f32} : f32[m, 64]
  yw = convert_element_type(y) {dtype: f32} : f32[m, 64]
)" + lines +
           R"(
  ww = convert_element_type(w) {dtype: f32} : f32[64, n]
  z = dot_general(l, ww) {contract: [[1], [0]], batch: [[], []], preferred: f32} : f32[m, n]
})";
}

TEST(contract, chosen_bf16_uses_the_dot_instruction) {
    const auto with_constant = [](const std::string &number, const std::string &line) {
        return chosen("  c = constant() {dtype: f32, value: " + number + "} : f32[]\n" +
                      "  cb = broadcast_in_dim(c) {dims: [], shape: [m, 64]} : f32[m, 64]\n" + line);
    };
    const std::string relu = "  l = max(xw, cb) : f32[m, 64]";
    const std::string mask = "  p = gt(xw, cb) : bool[m, 64]\n  g = neg(yw) : f32[m, 64]\n  l = select_n(p, cb, g) : f32[m, 64]";
    for (const std::string &line : {relu, mask}) EXPECT_NE(count_instructions(with_constant("0.125", line), "vdpbf16ps"), 0u) << line;
    for (const std::string &line : {relu, mask}) EXPECT_EQ(count_instructions(with_constant("0.1", line), "vdpbf16ps"), 0u) << line;
    EXPECT_EQ(count_instructions(chosen("  l = add(xw, yw) : f32[m, 64]"), "vdpbf16ps"), 0u);
}

/// A matmul by panels of `width` columns in groups of `group` elements.
std::string by_panels(const std::string &dtype, const std::string &sum, int group) {
    const std::string g = std::to_string(group), groups = std::to_string(64 / group);
    return "program k {kind: contract, panels: [2, " + groups + ", 64, " + g + "]} (x: " + dtype + "[64, 64], w: " + dtype + "[2, " +
           groups + ", 64, " + g + "]) -> (y: " + sum + R"([64, 128]) {
  wide = convert_element_type(x) {dtype: )" +
           sum + R"(} : )" + sum + R"([64, 64]
  t = transpose(w) {permutation: [1, 3, 0, 2]} : )" +
           dtype + "[" + groups + ", " + g + R"(, 2, 64]
  r = reshape(t) {shape: [64, 128]} : )" +
           dtype + R"([64, 128]
  columns = convert_element_type(r) {dtype: )" +
           sum + R"(} : )" + sum + R"([64, 128]
  y = dot_general(wide, columns) {batch: [[], []], contract: [[1], [0]], preferred: )" +
           sum + R"(} : )" + sum + R"([64, 128]
})";
}

TEST(contract, groups_of_panels_are_read_as_vectors) {
    const std::string pairs = by_panels("bf16", "f32", 2), quads = by_panels("i8", "i32", 4);
    EXPECT_NE(count_instructions(pairs, "vdpbf16ps"), 0u);
    EXPECT_NE(count_instructions(quads, "vpdpbusd"), 0u);
    for (const std::string &text : {pairs, quads}) EXPECT_EQ(count_instructions(text, "vpinsr") + count_instructions(text, "vpgather"), 0u);
}

/// The factors of f8 codes along the given axis of the left operand.
std::string scaled_codes(const std::string &dtype, const std::string &dims, const std::string &extent) {
    return "program k {kind: contract} (x: f8_e4m3fn[m, 64], s: " + dtype + "[" + extent + "], y: bf16[64, n]) -> (z: f32[m, n]) {" + R"(
  xw = convert_element_type(x) {dtype: f32} : f32[m, 64]
  sw = convert_element_type(s) {dtype: f32} : f32[)" +
           extent + R"(]
  sb = broadcast_in_dim(sw) {dims: )" +
           dims + R"(, shape: [m, 64]} : f32[m, 64]
  xs = mul(xw, sb) : f32[m, 64]
  yw = convert_element_type(y) {dtype: f32} : f32[64, n]
  z = dot_general(xs, yw) {contract: [[1], [0]], batch: [[], []], preferred: f32} : f32[m, n]
})";
}

TEST(contract, scaled_f8_uses_the_dot_instruction) {
    const auto along_depth = [](const std::string &dtype) { return count_instructions(scaled_codes(dtype, "[1]", "64"), "vdpbf16ps"); };
    EXPECT_NE(along_depth("f8_e8m0fnu"), 0u) << "a power of two";
    EXPECT_NE(along_depth("f8_e4m3fn"), 0u) << "4 bits by 4 bits are 8 bits, as in bf16";
    EXPECT_EQ(along_depth("bf16"), 0u) << "one factor for each term";
    EXPECT_NE(count_instructions(scaled_codes("bf16", "[0]", "m"), "vdpbf16ps"), 0u) << "one factor for each row";
}

TEST(contract, a_row_by_a_bf16_matrix_uses_the_dot_instruction) {
    const auto text = [](const std::string &dtype) {
        return "program k {kind: column} [n in 0..100000] (x: bf16[512], w: " + dtype + R"([512, n]) -> (y: f32[n]) {
  wide = convert_element_type(w) {dtype: f32} : f32[512, n]
  factor = convert_element_type(x) {dtype: f32} : f32[512]
  factors = broadcast_in_dim(factor) {dims: [0], shape: [512, n]} : f32[512, n]
  p = mul(wide, factors) : f32[512, n]
  y = reduce_sum(p) {axes: [0]} : f32[n]
})";
    };
    EXPECT_NE(count_instructions(text("bf16"), "vdpbf16ps"), 0u);
    EXPECT_EQ(count_instructions(text("f16"), "vdpbf16ps"), 0u);
}

TEST(contract, bytes_use_the_dot_instruction_that_does_not_saturate) {
    for (const std::string dtype : {"i8", "u8"}) {
        Form form;
        form.lhs_dtype = form.rhs_dtype = dtype;
        form.result_dtype = "i32";
        EXPECT_NE(count_instructions(form, "vpdpbusd"), 0u) << dtype;
        EXPECT_EQ(count_instructions(form, "vpdpbusds"), 0u) << dtype;
        EXPECT_EQ(count_instructions(form, "vpmaddubsw"), 0u) << dtype;
    }
}

TEST(contract, kernels_need_threads_and_memory_only) {
    CompiledKernel kernel(parse_program(Form{true, true, true}.text(), "k"));
    for (const std::string &name : kernel.undefined_symbols()) {
        const std::set<std::string> allowed = {"halide_do_par_for", "halide_malloc", "halide_free", "memset", "memcpy"};
        EXPECT_TRUE(allowed.count(name)) << name;
    }
}

} // namespace
} // namespace scalide::contract_test
