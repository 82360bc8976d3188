#include "interpret/interpret.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "support/programs/rules.h"
#include "support/programs/zeros.h"
#include "transforms/analysis/passes.h"
#include "transforms/library/matmul_form.h"
#include "transforms/pipeline.h"
#include <gtest/gtest.h>
#include <random>
#include <regex>

namespace scalide {

namespace {

constexpr auto f32 = Dtype::f32, f16 = Dtype::f16, bf16 = Dtype::bf16, e4m3 = Dtype::f8_e4m3fn;

/// A target whose library multiplies f32, f16 into f32 or f16, and f8 where it lies along k.
const TargetFacts facts = {
    "cuda",
    {{"lib", f32, f32, {{f32, Overflow::format, {f32}, {f32}}}},
     {"lib", f16, f16, {{f32, Overflow::format, {f32}, {f32}}, {f16, Overflow::format, {f16}, {f16}}}},
     {"lib", e4m3, e4m3, {{f32, Overflow::format, {bf16}, {f32}}, {e4m3, Overflow::saturate, {f16, bf16}, {f16, bf16}, true}}, true, 16}}};

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
    EXPECT_EQ(library_kernels(program), "program contract_1 {call: [[product, 1, b, 32, 64], [lhs, 0, 1, 64, 0], [rhs, 1, 1, 64, 0], "
                                        "[factor, 2], [result, 0]], kind: contract, library: lib}\n"
                                        "    (a0: f8_e4m3fn[b, 64], a1: f8_e4m3fn[32, 64], a2: f32[])\n"
                                        "    -> (r0: f32[b, 32] = v4) {\n"
                                        "  v0 = convert_element_type(a0) {dtype: f32} : f32[b, 64]\n"
                                        "  v1 = convert_element_type(a1) {dtype: f32} : f32[32, 64]\n"
                                        "  v2 = dot_general(v0, v1) {batch: [[], []], contract: [[1], [1]], preferred: f32} : f32[b, 32]\n"
                                        "  v3 = broadcast_in_dim(a2) {dims: [], shape: [b, 32]} : f32[b, 32]\n"
                                        "  v4 = mul(v2, v3) : f32[b, 32]\n}\n");
    EXPECT_EQ(kinds(program), (std::vector<std::string>{"tiled", "contract", "map"}));
}

TEST(fuse_calls, without_a_row_products_are_kernels_of_ours) {
    EXPECT_EQ(library_kernels(fused(scaled_f8, {})), "");
    EXPECT_EQ(kinds(fused(scaled_f8, {})), (std::vector<std::string>{"contract"}));
}

TEST(fuse_calls, the_conversion_of_the_result_joins_where_the_library_stores_it) {
    const auto text = [](const std::string &conversion) {
        return std::regex_replace(std::string(R"(program p(x: f16[b, 64], w: f16[64, 32]) -> (y: DTYPE[b, 32]) {
  x32 = convert_element_type(x) {dtype: f32} : f32[b, 64]
  w32 = convert_element_type(w) {dtype: f32} : f32[64, 32]
  z = dot_general(x32, w32) {batch: [[], []], contract: [[1], [0]], preferred: f32} : f32[b, 32]
  y = convert_element_type(z) {dtype: CONVERSION} : DTYPE[b, 32]
}
)"),
                                  std::regex("CONVERSION"), conversion);
    };
    const auto kinds_of = [&](const std::string &dtype, const std::string &more) {
        return kinds(fused(std::regex_replace(text(dtype + more), std::regex("DTYPE"), dtype)));
    };
    EXPECT_EQ(kinds_of("f16", ", overflow: format"), (std::vector<std::string>{"contract"}));
    EXPECT_EQ(kinds_of("f16", ""), (std::vector<std::string>{"contract", "map"})) << "the library does not saturate";
    EXPECT_EQ(kinds_of("bf16", ", overflow: format"), (std::vector<std::string>{"contract", "map"}));
    const Program factor = fused(R"(program p(x: f16[b, 64], w: f16[64, 32], s: f32[]) -> (y: f16[b, 32]) {
  x32 = convert_element_type(x) {dtype: f32} : f32[b, 64]
  w32 = convert_element_type(w) {dtype: f32} : f32[64, 32]
  z = dot_general(x32, w32) {batch: [[], []], contract: [[1], [0]], preferred: f32} : f32[b, 32]
  wide = broadcast_in_dim(s) {dims: [], shape: [b, 32]} : f32[b, 32]
  scaled = mul(z, wide) : f32[b, 32]
  y = convert_element_type(scaled) {dtype: f16, overflow: format} : f16[b, 32]
}
)");
    EXPECT_EQ(kinds(factor), (std::vector<std::string>{"contract"})) << "of a 16-bit result a number is a factor of the sum";
}

/// Heads lie beside each other in memory: their products get operands that one kernel copies, in the dtype in which they are stored.
TEST(fuse_calls, products_of_attention_have_narrow_operands) {
    const std::string text =
        R"(program loss(q: f16[2, 16, 4, 8], k: f16[2, 16, 4, 8], v: f16[2, 16, 4, 8], c: f16[2, 16, 4, 8]) -> (l: f32[]) {
  y = attention(q, k, v)
  t = mul(y, c)
  w = convert_element_type(t) {dtype: f32}
  l = reduce_sum(w) {axes: [0, 1, 2, 3]}
}
program p(q: f16[2, 16, 4, 8], k: f16[2, 16, 4, 8], v: f16[2, 16, 4, 8], c: f16[2, 16, 4, 8]) -> (l: f32[], dq: f16[2, 16, 4, 8], dk: f16[2, 16, 4, 8], dv: f16[2, 16, 4, 8]) {
  l, dq, dk, dv = value_and_grad(q, k, v, c) {program: loss, wrt: [q, k, v]}
}
)";
    CompileOptions options;
    options.facts = facts;
    const Policy policy =
        parse_policy("policy: format\noverflow: format\nrules: [{op: dot_general, operand: any, insert: [{convert: f16}]}]\n", "test");
    options.policy = policy;
    const Program program = compile(parse_program(text, "test"), rules(), options);
    int products = 0;
    for (const Program &kernel : program.programs) {
        if (kernel.attributes.at("kind").word != "contract") continue;
        products++;
        EXPECT_TRUE(kernel.attributes.contains("library")) << to_string(kernel);
    }
    EXPECT_EQ(products, 4) << "six products, of four kernels";
}

/// What joins the product in a program of f8 operands: `more` arguments, lines from the sum `z` to the result `y` of dtype `to`.
struct Epilogue {
    std::string more, lines, to = "f32", results = "";

    std::vector<std::string> joined() const {
        const Program program =
            fused("program p(x: f8_e4m3fn[b, 64], w: f8_e4m3fn[32, 64]" + more + ") -> (y: " + to + "[b, 32]" + results +
                  ") {\n  x32 = convert_element_type(x) {dtype: f32} : f32[b, 64]\n"
                  "  w32 = convert_element_type(w) {dtype: f32} : f32[32, 64]\n"
                  "  z = dot_general(x32, w32) {batch: [[], []], contract: [[1], [1]], preferred: f32} : f32[b, 32]\n" +
                  lines + "}\n");
        std::vector<std::string> ops;
        for (const Program &kernel : program.programs)
            if (kernel.attributes.contains("library"))
                for (const Node &node : kernel.nodes)
                    if (node.op != "broadcast_in_dim" && (node.op != "convert_element_type" || kernel.type(node.results[0]).dtype != f32))
                        ops.push_back(node.op);
        return ops;
    }
};

/// Lines of a program.
std::string wide(const std::string &name, const std::string &of, const std::string &dims = "") {
    return "  " + name + " = broadcast_in_dim(" + of + ") {dims: [" + dims + "], shape: [b, 32]} : f32[b, 32]\n";
}
std::string line(const std::string &name, const std::string &call, const std::string &type = "f32[b, 32]") {
    return "  " + name + " = " + call + " : " + type + "\n";
}
std::string widened(const std::string &name, const std::string &of, const std::string &type) {
    return line(name, "convert_element_type(" + of + ") {dtype: f32}", type);
}
const std::string to_f8 = line("y", "convert_element_type(t) {dtype: f8_e4m3fn}", "f8_e4m3fn[b, 32]");
using Ops = std::vector<std::string>;

TEST(fuse_calls, a_bias_joins_in_the_dtypes_that_the_library_adds) {
    const std::string lines = widened("c32", "c", "f32[32]") + wide("cw", "c32", "1") + line("y", "add(z, cw)");
    EXPECT_EQ((Epilogue{", c: bf16[32]", lines}.joined()), (Ops{"dot_general", "add"}));
    EXPECT_EQ((Epilogue{", c: f16[32]", lines}.joined()), (Ops{"dot_general"})) << "beside f32 results it is bf16";
    const std::string narrow = widened("c32", "c", "f32[32]") + wide("cw", "c32", "1") + line("t", "add(z, cw)") + to_f8;
    EXPECT_EQ((Epilogue{", c: f16[32]", narrow, "f8_e4m3fn"}.joined()), (Ops{"dot_general", "add", "convert_element_type"}));
    const std::string rows = widened("c32", "c", "f32[b]") + wide("cw", "c32", "0") + line("y", "add(z, cw)");
    EXPECT_EQ((Epilogue{", c: bf16[b]", rows}.joined()), (Ops{"dot_general"})) << "a number for each row is no bias";
    const std::string computed =
        widened("c32", "c", "f32[32]") + line("e", "exp(c32)", "f32[32]") + wide("cw", "e", "1") + line("y", "add(z, cw)");
    EXPECT_EQ((Epilogue{", c: bf16[32]", computed}.joined()), (Ops{"dot_general"})) << "it is stored as f32";
}

TEST(fuse_calls, an_array_joins_perhaps_times_a_number) {
    EXPECT_EQ((Epilogue{", r: f32[b, 32]", line("y", "add(r, z)")}.joined()), (Ops{"dot_general", "add"}));
    EXPECT_EQ((Epilogue{", r: f32[4, b, 8]", line("r2", "reshape(r) {shape: [b, 32]}") + line("y", "add(z, r2)")}.joined()),
              (Ops{"dot_general", "reshape", "add"}));
    const std::string scaled =
        wide("fw", "f") + line("rf", "mul(r, fw)") + wide("sw", "s") + line("zs", "mul(z, sw)") + line("y", "add(zs, rf)");
    EXPECT_EQ((Epilogue{", r: f32[b, 32], s: f32[], f: f32[]", scaled}.joined()), (Ops{"dot_general", "mul", "mul", "add"}));
    EXPECT_EQ((Epilogue{", r: f16[b, 32]", widened("r32", "r", "f32[b, 32]") + line("y", "add(z, r32)")}.joined()), (Ops{"dot_general"}));
    EXPECT_EQ((Epilogue{"", line("y", "add(z, z)")}.joined()), (Ops{"dot_general"}));
    const std::string both = wide("cw", "c", "1") + line("t1", "add(z, r)") + line("y", "add(t1, r)");
    EXPECT_EQ((Epilogue{", r: f32[b, 32], c: f32[32]", both}.joined()), (Ops{"dot_general", "add"})) << "one array joins";
}

TEST(fuse_calls, an_f8_result_joins_with_its_factor_and_largest_magnitude) {
    const std::string scaled = wide("fw", "f") + line("t", "mul(z, fw)");
    const std::string amax = line("m", "abs(z)") + line("a", "reduce_max(m) {axes: [0, 1]}", "f32[]");
    EXPECT_EQ((Epilogue{", f: f32[]", scaled + to_f8, "f8_e4m3fn"}.joined()), (Ops{"dot_general", "mul", "convert_element_type"}));
    EXPECT_EQ((Epilogue{", f: f32[]", amax + scaled + to_f8, "f8_e4m3fn", ", a: f32[]"}.joined()),
              (Ops{"dot_general", "abs", "reduce_max", "mul", "convert_element_type"}));
    const std::string two = wide("sw", "s") + line("u", "mul(z, sw)") + line("m", "abs(u)") +
                            line("a", "reduce_max(m) {axes: [0, 1]}", "f32[]") + wide("fw", "f") + line("t", "mul(u, fw)") + to_f8;
    EXPECT_EQ((Epilogue{", s: f32[], f: f32[]", two, "f8_e4m3fn", ", a: f32[]"}.joined()),
              (Ops{"dot_general", "mul", "abs", "reduce_max", "mul", "convert_element_type"}));
    EXPECT_EQ((Epilogue{", f: f32[]", scaled + line("y", "add(t, z)")}.joined()), (Ops{"dot_general"})) << "z is stored";
    EXPECT_EQ(
        (Epilogue{"", line("m", "abs(z)") + line("a", "reduce_max(m) {axes: [0, 1]}", "f32[]") + line("y", "exp(z)"), "f32", ", a: f32[]"}
             .joined()),
        (Ops{"dot_general"}))
        << "of f8 results alone";
}

TEST(fuse_calls, a_factor_that_waits_for_the_largest_magnitude_stays_apart) {
    const std::string lines =
        line("m", "abs(z)") + line("a", "reduce_max(m) {axes: [0, 1]}", "f32[]") + wide("fw", "a") + line("t", "mul(z, fw)") + to_f8;
    EXPECT_EQ((Epilogue{"", lines, "f8_e4m3fn"}.joined()), (Ops{"dot_general"}));
}

TEST(fuse_calls, one_product_is_added_to_another) {
    const Program program = fused(R"(program p(x: f32[b, 64], w: f32[64, 32], u: f32[b, 64], v: f32[64, 32]) -> (y: f32[b, 32]) {
  z = dot_general(x, w) {batch: [[], []], contract: [[1], [0]], preferred: f32} : f32[b, 32]
  t = dot_general(u, v) {batch: [[], []], contract: [[1], [0]], preferred: f32} : f32[b, 32]
  y = add(z, t) : f32[b, 32]
}
)");
    EXPECT_EQ(kinds(program), (Ops{"contract", "contract"}));
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
    const auto form = matmul_form(program, producers(program), program.nodes[0]);
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
    EXPECT_FALSE(matmul_form(program, producers(program), program.nodes[0]));
}

/// The steps of a fused program, one line each: kernel and type of its first result; and the interpreter's word that it means the same.
std::vector<std::string> steps_of(const std::string &text) {
    const Program program = parse_program(text, "test");
    verify(program, "");
    const Program result = fused(text);
    std::mt19937 random(5);
    std::vector<Array> arguments;
    for (const Argument &argument : program.arguments) {
        Array array = zeros(program.type(argument.value), {{"b", 4}});
        for (double &value : array.data) value = static_cast<double>(random() % 7) - 3;
        arguments.push_back(array);
    }
    const std::vector<Array> expected = interpret(program, arguments, rules(), Mode::stored);
    const std::vector<Array> got = interpret(result, arguments, rules(), Mode::stored);
    for (size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(expected[i].data, got[i].data);
    std::vector<std::string> steps;
    for (const Node &call : result.nodes) {
        const Program &kernel = result.program(call.attributes.at("program").word);
        const bool is_call = kernel.attributes.contains("library");
        steps.push_back((is_call ? "library" : kernel.attributes.at("kind").word) + " " + to_string(result.type(call.results[0])));
    }
    return steps;
}

TEST(fuse_calls, reshapes_of_a_result_stand_behind_its_epilogue) {
    const auto text = [](const std::string &bias, const std::string &rest) {
        return "program p(x: f8_e4m3fn[b, 8, 64], w: f8_e4m3fn[32, 64], s: f32[], c: bf16" + bias +
               ", r: f32[b, 8, 4, 8]) -> (y: f32[b, 8, 4, 8]) {\n"
               "  x2 = reshape(x) {shape: [8*b, 64]} : f8_e4m3fn[8*b, 64]\n"
               "  x32 = convert_element_type(x2) {dtype: f32} : f32[8*b, 64]\n"
               "  w32 = convert_element_type(w) {dtype: f32} : f32[32, 64]\n"
               "  z = dot_general(x32, w32) {batch: [[], []], contract: [[1], [1]], preferred: f32} : f32[8*b, 32]\n"
               "  z4 = reshape(z) {shape: [b, 8, 4, 8]} : f32[b, 8, 4, 8]\n"
               "  s4 = broadcast_in_dim(s) {dims: [], shape: [b, 8, 4, 8]} : f32[b, 8, 4, 8]\n"
               "  v = mul(z4, s4) : f32[b, 8, 4, 8]\n"
               "  c32 = convert_element_type(c) {dtype: f32} : f32" +
               bias + "\n" + rest + "}\n";
    };
    EXPECT_EQ(
        steps_of(text("[4, 8]", "  cw = broadcast_in_dim(c32) {dims: [2, 3], shape: [b, 8, 4, 8]} : f32[b, 8, 4, 8]\n"
                                "  t = add(v, cw) : f32[b, 8, 4, 8]\n  u = add(t, r) : f32[b, 8, 4, 8]\n  y = exp(u) : f32[b, 8, 4, 8]\n")),
        (Ops{"library f32[8*b, 32]", "map f32[b, 8, 4, 8]"}));
    // A vector along other axes is added by the kernel that follows.
    EXPECT_EQ(steps_of(text("[8, 8]", "  cw = broadcast_in_dim(c32) {dims: [1, 3], shape: [b, 8, 4, 8]} : f32[b, 8, 4, 8]\n"
                                      "  t = add(v, cw) : f32[b, 8, 4, 8]\n  y = exp(t) : f32[b, 8, 4, 8]\n")),
              (Ops{"library f32[8*b, 32]", "map f32[b, 8, 4, 8]"}));
}

TEST(fuse_calls, f8_operands_of_odd_extents_get_zeros_from_the_kernel_that_rounds_them) {
    const std::string text = R"(program p(x: f32[48, 20], w: f8_e4m3fn[10, 20], s: f32[]) -> (y: f32[48, 10]) {
  n = convert_element_type(x) {dtype: f8_e4m3fn} : f8_e4m3fn[48, 20]
  x32 = convert_element_type(n) {dtype: f32} : f32[48, 20]
  w32 = convert_element_type(w) {dtype: f32} : f32[10, 20]
  z = dot_general(x32, w32) {batch: [[], []], contract: [[1], [1]], preferred: f32} : f32[48, 10]
  wide = broadcast_in_dim(s) {dims: [], shape: [48, 10]} : f32[48, 10]
  v = mul(z, wide) : f32[48, 10]
  y = exp(v) : f32[48, 10]
}
)";
    EXPECT_EQ(steps_of(text), (Ops{"map f8_e4m3fn[48, 32]", "library f32[48, 16]", "map f32[48, 10]"}));
    EXPECT_NE(library_kernels(fused(text)).find("mul"), std::string::npos);
    // Extents that are symbols are looked at when the program is bound.
    EXPECT_EQ(steps_of(std::regex_replace(text, std::regex("48"), "b")),
              (Ops{"map f8_e4m3fn[b, 32]", "library f32[b, 16]", "map f32[b, 10]"}));
}

TEST(fuse_calls, zeros_do_not_touch_the_largest_magnitude_and_get_no_bias) {
    const auto text = [](const std::string &epilogue) {
        return R"(program p(x: f8_e4m3fn[16, 16], w: f8_e4m3fn[10, 16], f: f32[], c: bf16[10]) -> (y: f8_e4m3fn[16, 10], a: f32[]) {
  x32 = convert_element_type(x) {dtype: f32} : f32[16, 16]
  w32 = convert_element_type(w) {dtype: f32} : f32[10, 16]
  z = dot_general(x32, w32) {batch: [[], []], contract: [[1], [1]], preferred: f32} : f32[16, 10]
  wide = broadcast_in_dim(f) {dims: [], shape: [16, 10]} : f32[16, 10]
)" + epilogue +
               R"(  m = abs(t) : f32[16, 10]
  a = reduce_max(m) {axes: [0, 1]} : f32[]
  u = mul(t, wide) : f32[16, 10]
  y = convert_element_type(u) {dtype: f8_e4m3fn} : f8_e4m3fn[16, 10]
}
)";
    };
    const std::string copied = "map f8_e4m3fn[16, 16]";
    EXPECT_EQ(steps_of(text("  t = mul(z, wide) : f32[16, 10]\n")), (Ops{copied, "library f32[]", "map f8_e4m3fn[16, 10]"}));
    const std::string bias = "  c32 = convert_element_type(c) {dtype: f32} : f32[10]\n"
                             "  cw = broadcast_in_dim(c32) {dims: [1], shape: [16, 10]} : f32[16, 10]\n  t = add(z, cw) : f32[16, 10]\n";
    EXPECT_EQ(steps_of(text(bias))[1], "library f32[16, 16]");
}

/// Kinds of the kernels of a product with several batch axes.
std::vector<std::string> batched(const std::string &x, const std::string &w, const std::string &axes, const std::string &result) {
    const std::string text = "program p(x: " + x + ", w: " + w + ") -> (y: " + result + ") {\n  y = dot_general(x, w) {" + axes +
                             ", preferred: f32} : " + result + "\n}\n";
    return kinds(fused(to_string(expand(parse_program(text, "test"), rules()))));
}

TEST(fuse_calls, batch_axes_side_by_side_are_one) {
    EXPECT_EQ(batched("f32[b, 4, 8, 64]", "f32[b, 4, 16, 64]", "batch: [[0, 1], [0, 1]], contract: [[3], [3]]", "f32[b, 4, 8, 16]"),
              (Ops{"contract", "map"}))
        << "the result is copied to its own shape";
    // Heads behind tokens have no single stride from matrix to matrix: both operands are copied.
    EXPECT_EQ(batched("f32[b, 8, 4, 64]", "f32[b, 16, 4, 64]", "batch: [[0, 2], [0, 2]], contract: [[3], [3]]", "f32[b, 4, 8, 16]"),
              (Ops{"map", "contract", "map"}));
}

} // namespace scalide
