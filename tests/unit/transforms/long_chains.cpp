#include "ir/text.h"
#include "support.h"
#include "transforms/pipeline.h"
#include <gtest/gtest.h>

namespace scalide {

namespace {

/// Each node reads the one before: what walks them by recursion needs a stack as deep as the program is long. 8 MiB took 12,000 nodes.
constexpr int length = 20001; // odd: of an even number of transpositions nothing is left

std::string chain(const std::string &link) {
    std::string text = "program chain(x0: f32[64, 64] inout, a: f32[64, 64], s: f32[]) -> (x0 = x" + std::to_string(length) + ") {\n";
    for (int i = 0; i < length; i++) {
        std::string line = "  x" + std::to_string(i + 1) + " = " + link + "\n";
        line.replace(line.find("here"), 4, "x" + std::to_string(i));
        text += line;
    }
    return text + "}\n";
}

} // namespace

class LongChain : public testing::TestWithParam<const char *> {};

TEST_P(LongChain, is_compiled) {
    for (const std::string policy : {"f32", "f16_scaled", "f8_scaled"}) {
        CompileOptions options;
        options.policy = load_policy(std::string(SCALIDE_RULES_DIR) + "/policies/" + policy + ".yaml");
        options.checks_types = false; // takes as long as all passes
        EXPECT_FALSE(compile(parse_program(chain(GetParam()), "chain.scl"), rules(), options).programs.empty()) << policy;
    }
}

INSTANTIATE_TEST_SUITE_P(of, LongChain,
                         testing::Values("add(here, a)", "mul(here, s)", "transpose(here) {permutation: [1, 0]}", "exp(here)"));

} // namespace scalide
