#include "ir/text.h"
#include "transforms/analysis/passes.h"
#include <gtest/gtest.h>

// Sums over rows next to row kernels.
namespace scalide {
namespace {

/// The kinds of the kernels of: rows less their mean, and sums over them.
std::vector<std::string> kinds(const std::string &rows, const std::string &columns, int sums, const std::string &settings = "") {
    const std::string shape = "[" + rows + ", " + columns + "]", at = " {dims: [0], shape: " + shape + "} : f32" + shape;
    std::string text = "program p" + settings + (rows == "b" ? " [b in 1..100000]" : "") + " (x: f32" + shape + ") -> (y: f32" + shape;
    for (int i = 0; i < sums; i++) text += ", s" + std::to_string(i) + ": f32[" + columns + "]";
    text += ") {\n  s = reduce_sum(x) {axes: [1]} : f32[" + rows + "]\n  w = broadcast_in_dim(s)" + at + "\n  y = sub(x, w) : f32" + shape +
            "\n";
    for (int i = 0; i < sums; i++) {
        const std::string n = std::to_string(i);
        text += "  p" + n + " = " + (i % 2 ? "exp" : "tanh") + "(" + (i < 2 ? "y" : "p" + std::to_string(i - 2)) + ") : f32" + shape + "\n";
        text += "  s" + n + " = reduce_sum(p" + n + ") {axes: [0]} : f32[" + columns + "]\n";
    }
    std::vector<std::string> found;
    const Program fused = fuse(parse_program(text + "}\n", "text"), {});
    for (const Node &call : fused.nodes) {
        for (const Program &kernel : fused.programs) {
            if (kernel.name == call.attributes.at("program").word) found.push_back(kernel.attributes.at("kind").word);
        }
    }
    return found;
}

using Kinds = std::vector<std::string>;

TEST(fuse_sums, many_long_rows_take_their_sums_along) {
    EXPECT_EQ(kinds("8192", "4096", 2), Kinds{"row"});
    EXPECT_EQ(kinds("8191", "4096", 2), (Kinds{"row", "column"}));
    EXPECT_EQ(kinds("8192", "1024", 2), (Kinds{"row", "column"}));
    EXPECT_EQ(kinds("8192", "4097", 1), (Kinds{"row", "column"}));
    EXPECT_EQ(kinds("b", "2048", 1), (Kinds{"row", "column"}));
}

TEST(fuse_sums, a_thread_keeps_32_sums) {
    EXPECT_EQ(kinds("8192", "4096", 3), (Kinds{"row", "column"}));
    EXPECT_EQ(kinds("8192", "2048", 4), Kinds{"row"});
}

TEST(fuse_sums, a_program_may_ask_for_it) {
    EXPECT_EQ(kinds("b", "96", 1, " {sums: with_rows}"), Kinds{"row"});
    EXPECT_EQ(kinds("96", "96", 1, " {sums: with_rows}"), (Kinds{"row", "column"})); // nothing would tell a row from a column
}

} // namespace
} // namespace scalide
