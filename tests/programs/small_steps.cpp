#include "ir/regions.h"
#include "ir/text.h"
#include "support/compiled/compiled_program.h"
#include "support/programs/program_of_operators.h"
#include "support/programs/rules.h"
#include "support/rounding_errors/running_error.h"
#include "transforms/analysis/passes.h"
#include "transforms/pipeline.h"
#include <gtest/gtest.h>

// Random programs of static extents as steps of a loop, whose kernels are of class small: compiled and run, against the interpreter on the
// same kernels, and these kernels against the program. Regions (regions.cpp) have other loops and few operators.
namespace scalide {

namespace {

constexpr int steps = 3;

bool is_plain(const Program &program) {
    return std::ranges::none_of(program.arguments, [](const Argument &argument) { return argument.scaled || argument.inout; }) &&
           std::ranges::none_of(program.results, &Result::scaled);
}

/// Returns a loop that runs the program for each element of its arguments.
Program as_steps(Program program) {
    program.symbols.clear();
    program.name = "body";
    Program outer;
    outer.name = "steps";
    Node node;
    node.op = "scan";
    node.attributes["length"] = int64_t(steps);
    const auto of_all_steps = [&](ValueId value) {
        Type type = program.type(value);
        type.shape.insert(type.shape.begin(), steps);
        return type;
    };
    for (Argument &argument : program.arguments) {
        argument.supply = Supply::each;
        outer.arguments.push_back({add_value(outer, program.value_name(argument.value), of_all_steps(argument.value))});
        node.operands.push_back(outer.arguments.back().value);
    }
    std::vector<Type> types;
    for (const Result &result : program.results) types.push_back(of_all_steps(result.value));
    node.regions = {std::make_shared<const Program>(std::move(program))};
    for (const ValueId value : add_node(outer, std::move(node), types, "result")) outer.results.push_back({outer.value_name(value), value});
    return outer;
}

/// Programs without scaled arguments; others are drawn again.
Program draw_steps(std::mt19937 &random) {
    static constexpr int64_t extents[] = {1, 4, 16, 17, 33};
    for (;;) {
        const Program program = program_of_operators(random, 2 + int(random() % 12));
        if (is_plain(program)) return as_steps(with_values(program, {{"b", extents[random() % std::size(extents)]}}));
    }
}

class SmallSteps : public testing::TestWithParam<unsigned> {};

TEST_P(SmallSteps, compiled_equal_interpreted) {
    std::mt19937 random(GetParam());
    const Program program = draw_steps(random);
    SCOPED_TRACE("seed " + std::to_string(GetParam()) + "\n" + to_string(program));
    try {
        const CompiledProgram compiled(program, rules(), {}, "host", Unroll::none);
        const std::vector<Array> inputs = draw_inputs(compiled.fused(), {}, random);
        const auto kernels = interpret_with_errors(compiled.fused(), inputs, rules(), Mode::stored);
        EXPECT_EQ(difference(compiled.run(inputs), kernels), "") << "compiled";
        const auto meaning = interpret_with_errors(infer_types(program, rules()), inputs, rules(), Mode::real);
        EXPECT_EQ(difference(interpret(compiled.fused(), inputs, rules(), Mode::real), meaning), "") << "fused";
    } catch (const std::exception &error) {
        ADD_FAILURE() << error.what();
    }
}

// The kernels of the programs above: without this test, they could have none of the class.
TEST(small_steps, have_kernels_of_class_small) {
    int count = 0;
    for (unsigned seed = 0; seed < 30; seed++) {
        std::mt19937 random(seed);
        CompileOptions options;
        options.unroll = Unroll::none;
        const Program drawn = draw_steps(random);
        SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + to_string(drawn));
        Program fused;
        EXPECT_NO_THROW(fused = compile(drawn, rules(), options));
        count += std::ranges::any_of(fused.programs, [](const Program &kernel) { return kernel.attributes.at("kind").word == "small"; });
    }
    EXPECT_GE(count, 10);
}

/// The parameter, not its place in the range.
std::string seed_of(const testing::TestParamInfo<unsigned> &test) { return std::to_string(test.param); }

INSTANTIATE_TEST_SUITE_P(sample, SmallSteps, testing::Range(0u, 30u), seed_of);
INSTANTIATE_TEST_SUITE_P(long_run, SmallSteps, testing::Range(30u, 1000u), seed_of);

} // namespace

} // namespace scalide
