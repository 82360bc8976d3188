#include "ir/regions.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "transforms/analysis/passes.h"
#include <gtest/gtest.h>

// A step of a loop over small arrays is one kernel.
namespace scalide {

namespace {

/// The kinds of the kernels that a program of core operators calls, in the order of the calls; those of a loop in parentheses.
std::string kernels_in(const Program &program, const Program &outermost) {
    std::string text;
    for (const Node &node : program.nodes) {
        const std::string separator = text.empty() ? "" : " ";
        if (node.op == "call") {
            const auto kernel = std::ranges::find(outermost.programs, node.attributes.at("program").word, &Program::name);
            text += separator + kernel->attributes.at("kind").word;
        }
        for (const Region &region : node.regions) {
            const std::string inner = kernels_in(*region, outermost);
            text += separator + (node.op == "straight" ? inner : "(" + inner + ")");
        }
    }
    return text;
}

std::string kernels(const std::string &text, const TargetFacts &target = {}) {
    const Program program = parse_program(text, "test");
    verify(program, "");
    const Program fused = fuse(program, target);
    verify(fused, "fuse");
    return kernels_in(fused, fused);
}

/// A loop of 100 steps with a matmul, a reduction and arithmetic on n elements.
std::string loop(const std::string &n, const std::string &more = "") {
    const std::string square = "f32[" + n + ", " + n + "]", line = "f32[" + n + "]";
    const std::string symbols = n == "n" ? " [n in 1..8]" : "";
    return "program p" + symbols + " (w: " + square + ", h0: " + line + ", xs: f32[100, " + n + "]) -> (h: " + line + ", s: f32[100]) {\n" +
           "h, s = scan(w, h0, xs) {length: 100} : " + line + ", f32[100] with body(w: " + square + ", h: " + line + " inout, x: " + line +
           " each) -> (h = after, s: f32[] = s) {\n" + "p = dot_general(w, h) {contract: [[1], [0]]} : " + line +
           "\n q = add(p, x) : " + line + "\n" + more + "after = tanh(q) : " + line + "\n s = reduce_sum(after) {axes: [0]} : f32[]\n}\n}";
}

} // namespace

TEST(fuse_small, a_step_is_one_kernel) {
    EXPECT_EQ(kernels(loop("4")), "(small)");
    EXPECT_EQ(kernels(loop("45")), "(small)") << "2,025 products";
    EXPECT_EQ(kernels(loop("46")), "(contract)") << "too many products";
    EXPECT_EQ(kernels(loop("n")), "(contract)") << "a kernel for any n has loops of its own";
}

TEST(fuse_small, gpus_have_no_such_kernels) {
    TargetFacts gpu;
    gpu.prepares_kernels = false;
    gpu.is_gpu = true;
    EXPECT_EQ(kernels(loop("4"), gpu).find("small"), std::string::npos);
}

TEST(fuse_small, what_is_in_no_loop_stays_as_it_is) {
    EXPECT_EQ(kernels("program p (w: f32[4, 4], h: f32[4]) -> (s: f32[]) {\n p = dot_general(w, h) {contract: [[1], [0]]} : f32[4]\n"
                      "t = tanh(p) : f32[4]\n s = reduce_sum(t) {axes: [0]} : f32[]\n}"),
              "contract full");
}

TEST(fuse_small, a_sort_divides_a_step) {
    const std::string sorted =
        "o = argsort(q) {dimension: 0, descending: false} : i32[4]\n f = convert_element_type(o) {dtype: f32} : f32[4]\n"
        "r = reduce_max(f) {axes: [0]} : f32[]\n rb = broadcast_in_dim(r) {dims: [], shape: [4]} : f32[4]\n"
        "u = mul(rb, q) : f32[4]\n";
    std::string text = loop("4", sorted);
    text.replace(text.find("tanh(q)"), 7, "tanh(u)");
    EXPECT_EQ(kernels(text), "(small sort small)");
}

TEST(fuse_small, a_long_step_is_several_kernels) {
    std::string chain = "t0 = exp(q) : f32[4]\n";
    for (int i = 0; i < 200; i++) {
        const std::string number = std::to_string(i);
        chain += "m" + number + " = reduce_max(t" + number + ") {axes: [0]} : f32[]\n b" + number + " = broadcast_in_dim(m" + number +
                 ") {dims: [], shape: [4]} : f32[4]\n t" + std::to_string(i + 1) + " = sub(b" + number + ", t" + number + ") : f32[4]\n";
    }
    std::string text = loop("4", chain);
    text.replace(text.find("tanh(q)"), 7, "tanh(t200)");
    EXPECT_EQ(kernels(text), "(small small small small small)");
}

} // namespace scalide
