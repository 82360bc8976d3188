#include "ir/text.h"
#include "ir/verify.h"
#include "support/compiled/compiled_program.h"
#include "support/programs/program_of_operators.h"
#include "support/programs/program_of_regions.h"
#include "support/programs/rules.h"
#include "support/rounding_errors/running_error.h"
#include "transforms/analysis/operators.h"
#include "transforms/analysis/passes.h"
#include <gtest/gtest.h>

// Random programs of nested loops and branches, compiled as loops and run, against the interpreter on the program as it was written: it
// runs one step after the other, and one branch. Their text parses back. The long run is labelled slow.

namespace scalide {

namespace {

class Regions : public testing::TestWithParam<unsigned> {};

TEST_P(Regions, compiled_equal_interpreted) {
    std::mt19937 random(GetParam());
    const Program program = program_of_regions(random);
    const std::string text = to_string(program);
    SCOPED_TRACE("seed " + std::to_string(GetParam()) + "\n" + text);
    verify(program, "");
    ASSERT_EQ(to_string(parse_program(text, "regions.scl")), text);
    const Program typed = infer_types(program, rules());
    const CompiledProgram compiled(program, rules(), {}, "host", GetParam() % 4 == 0 ? Unroll::short_ones : Unroll::none);
    for (const int64_t batch : {1, 9}) {
        const std::vector<Array> inputs = draw_inputs(compiled.fused(), {{"b", batch}}, random);
        EXPECT_EQ(difference(compiled.run(inputs), interpret_with_errors(typed, inputs, rules(), Mode::stored)), "");
    }
}

/// The gradients by all float arguments, of the sum of the squares of all results.
Program gradient_of(Program program) {
    Builder builder(rules(), program);
    ValueId loss = builder.constant(0);
    for (const Result &result : program.results) {
        const ValueId square = builder.add_one("mul", {result.value, result.value});
        const Attributes axes = reduce_attributes(count_up(program.type(result.value).rank()));
        loss = builder.add_one("add", {loss, builder.add_one("reduce_sum", {square}, axes)});
    }
    std::vector<ValueId> wrt;
    for (const Argument &argument : program.arguments)
        if (is_float(program.type(argument.value).dtype)) wrt.push_back(argument.value);
    const std::vector<ValueId> gradients = append_gradient(program, rules(), loss, wrt);
    program.results.clear();
    for (const ValueId gradient : gradients) program.results.push_back({program.value_name(gradient), gradient});
    return program;
}

TEST_P(Regions, compiled_gradients_equal_interpreted) {
    std::mt19937 random(GetParam());
    const Program program = gradient_of(infer_types(program_of_regions(random), rules()));
    const std::string text = to_string(program);
    SCOPED_TRACE("seed " + std::to_string(GetParam()) + "\n" + text);
    verify(program, "");
    ASSERT_EQ(to_string(parse_program(text, "regions.scl")), text);
    const CompiledProgram compiled(program, rules(), {});
    const std::vector<Array> inputs = draw_inputs(compiled.fused(), {{"b", 3}}, random);
    EXPECT_EQ(difference(compiled.run(inputs), interpret_with_errors(program, inputs, rules(), Mode::stored)), "");
}

std::string name_of(const testing::TestParamInfo<unsigned> &test) { return std::to_string(test.param); }

INSTANTIATE_TEST_SUITE_P(sample, Regions, testing::Range(0u, 100u), name_of);
INSTANTIATE_TEST_SUITE_P(long_run, Regions, testing::Range(100u, 2000u), name_of);

} // namespace

} // namespace scalide
