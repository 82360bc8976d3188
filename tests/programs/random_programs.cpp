#include "support/compiled/compiled_program.h"
#include "support/programs/random_program.h"
#include "support/programs/rules.h"
#include "transforms/passes.h"
#include <gtest/gtest.h>

// Random programs with their gradients, compiled and run, against the interpreter in mode `stored` on the same kernels.

namespace scalide {

namespace {

/// f32 differs by the order of sums. A policy's narrow format decides by how much: a value that lies near a tie in one order of a sum, and
/// on the other side in another, is one unit of its format off, and so is what is computed from it.
struct Numerics {
    const char *policy;
    double tolerance;
    friend void PrintTo(const Numerics &each, std::ostream *out) { *out << each.policy; }
};
constexpr Numerics numerics[] = {{"f32", 1e-5}, {"bf16", 0x1p-6}, {"f16_scaled", 0x1p-9}, {"f8_scaled", 0x1p-2}};

Program program_with_gradient(std::mt19937 &random) {
    Program program = random_program(random, 8);
    std::vector<ValueId> arguments;
    for (const Argument &argument : program.arguments) {
        if (program.type(argument.value).dtype == Dtype::f32) arguments.push_back(argument.value);
    }
    const std::vector<ValueId> gradients = append_gradient(program, rules(), program.results[0].value, arguments);
    for (size_t i = 0; i < gradients.size(); i++) program.results.push_back({"gradient" + std::to_string(i), gradients[i]});
    return program;
}

class RandomPrograms : public testing::TestWithParam<Numerics> {};

TEST_P(RandomPrograms, compiled_equal_interpreted) {
    const Policy policy = load_policy(std::filesystem::path(SCALIDE_RULES_DIR) / "policies" / (GetParam().policy + std::string(".yaml")));
    for (unsigned seed = 1; seed <= 8; seed++) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        std::mt19937 random(seed);
        const Program program = program_with_gradient(random);
        const std::vector<Array> inputs = random_inputs(program, random);
        const CompiledProgram compiled(program, rules(), policy);
        const std::vector<Array> expected = interpret(compiled.fused(), inputs, rules(), Mode::stored), got = compiled.run(inputs);
        for (size_t r = 0; r < got.size(); r++) {
            EXPECT_EQ(compare(got[r], expected[r], GetParam().tolerance), "") << compiled.fused().results[r].name;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(programs, RandomPrograms, testing::ValuesIn(numerics),
                         [](const auto &info) { return std::string(info.param.policy); });

} // namespace

} // namespace scalide
