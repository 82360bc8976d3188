#include "ir/text.h"
#include "support/compiled/compiled_program.h"
#include "support/programs/program_of_operators.h"
#include "support/programs/rules.h"
#include "support/rounding_errors/running_error.h"
#include "transforms/analysis/passes.h"
#include <cmath>
#include <gtest/gtest.h>

// Random programs of 1 to 40 operators, compiled and run on a small and a larger batch, against the interpreter in mode `stored` on the
// same kernels, and these kernels in mode `real` against the program before all passes: plans, arenas and bindings, in poisoned memory
// (CMakeLists.txt). Kernels by themselves, gradients and policies: tests/guarded. The long run is labelled slow.

namespace scalide {

namespace {

/// The arrays that two parts of each scaled argument stand for.
std::vector<Array> full_inputs(const Program &program, const std::vector<Array> &parts) {
    std::vector<Array> inputs;
    auto part = parts.begin();
    for (const Argument &argument : program.arguments) {
        inputs.push_back(*part++);
        if (!argument.scaled) continue;
        for (double &element : inputs.back().data) element *= part->data[0];
        part++;
    }
    return inputs;
}

/// Data times scale is rounded in f64 too, also if the value itself is not.
std::vector<Array> with_roundings_of_f64(std::vector<Array> arrays) {
    for (Array &array : arrays) {
        if (!is_float(array.dtype)) continue;
        array.error.resize(array.data.size());
        for (size_t i = 0; i < array.data.size(); i++)
            if (std::isfinite(array.data[i])) array.error[i] += 0x1p-50 * std::abs(array.data[i]);
    }
    return arrays;
}

class Fuzz : public testing::TestWithParam<unsigned> {};

void run(unsigned seed) {
    std::mt19937 random(seed);
    const Program program = program_of_operators(random, 1 + int(random() % 40 * (random() % 40) / 39)); // 10 on average
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + to_string(program));
    try {
        const CompiledProgram compiled(program, rules(), {});
        const Program source = inline_calls(infer_types(program, rules()), rules());
        for (const int64_t batch : {1 + int64_t(random() % 7), 8 + int64_t(random() % 57)}) {
            const std::vector<Array> inputs = draw_inputs(compiled.fused(), {{"b", batch}}, random);
            const auto kernels = interpret_with_errors(compiled.fused(), inputs, rules(), Mode::stored);
            const auto meaning = with_roundings_of_f64(interpret_with_errors(source, full_inputs(source, inputs), rules(), Mode::real));
            EXPECT_EQ(difference(compiled.run(inputs), kernels), "") << "compiled";
            EXPECT_EQ(difference(interpret(compiled.fused(), inputs, rules(), Mode::real), meaning), "") << "fused";
        }
    } catch (const std::exception &error) {
        ADD_FAILURE() << error.what();
    }
}

TEST_P(Fuzz, compiled_equal_interpreted) { run(GetParam()); }

/// The parameter, not its place in the range.
std::string seed_of(const testing::TestParamInfo<unsigned> &test) { return std::to_string(test.param); }

INSTANTIATE_TEST_SUITE_P(sample, Fuzz, testing::Range(0u, 30u), seed_of);
INSTANTIATE_TEST_SUITE_P(long_run, Fuzz, testing::Range(30u, 2000u), seed_of);

} // namespace

} // namespace scalide
