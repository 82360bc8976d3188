#include "ir/text.h"
#include "support/compiled/compiled_program.h"
#include "support/fragments/random_optimizer.h"
#include "support/programs/program_of_operators.h"
#include "support/programs/rules.h"
#include "support/rounding_errors/running_error.h"
#include "transforms/pipeline.h"
#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>

// Random training steps of the DSL: a network, a loss scaler, a clip and an optimizer, in a policy that ships. Several steps, with batches
// of zeros and with an infinity, agree with the interpreter, and with a scaler no parameter becomes infinite or NaN. The long run is
// labelled slow.

namespace scalide {

namespace {

constexpr int steps = 4;

/// The first values of the states, with a scale of 1 where a policy adds one.
std::vector<Array> first_inputs(const Program &fused, const std::map<std::string, Array> &states) {
    std::mt19937 random;
    std::vector<Array> inputs = draw_inputs(fused, {}, random);
    for (size_t i = 0; i < inputs.size(); i++) {
        const Argument &argument = fused.arguments[i];
        const auto state = states.find(argument.part.of.empty() ? fused.value_name(argument.value) : argument.part.of);
        if (argument.initial) std::ranges::fill(inputs[i].data, static_cast<double>(*argument.initial));
        if (argument.part.is_scale()) {
            inputs[i].data[0] = 1;
        } else if (state != states.end()) {
            std::ranges::transform(state->second.data, inputs[i].data.begin(),
                                   [&](double x) { return is_float(inputs[i].dtype) ? round_to(inputs[i].dtype, x) : x; });
        }
    }
    return inputs;
}

/// Draws the inputs of a step: numbers of several magnitudes, zeros, or numbers of which one is infinite.
void draw_batch(const Program &fused, std::mt19937 &random, std::vector<Array> &inputs) {
    static constexpr double factors[] = {1, 1, 40, 0x1p-20, 0};
    const double factor = factors[random() % std::size(factors)];
    const bool has_infinity = random() % 4 == 0;
    const std::vector<Array> drawn = draw_inputs(fused, {}, random);
    for (size_t i = 0; i < inputs.size(); i++) {
        const std::string &name = fused.value_name(fused.arguments[i].value);
        if (name != "x" && name != "target") continue;
        inputs[i] = drawn[i];
        for (double &element : inputs[i].data) element = round_to(Dtype::f32, factor * element);
        if (has_infinity && name == "x") inputs[i].data[random() % inputs[i].data.size()] = HUGE_VAL;
    }
}

void expect_finite(const Program &fused, const std::vector<Array> &results) {
    for (size_t r = 0; r < results.size(); r++)
        if (fused.results[r].argument >= 0)
            EXPECT_TRUE(std::ranges::all_of(results[r].data, [](double x) { return std::isfinite(x); })) << fused.results[r].name;
}

class Optimizers : public testing::TestWithParam<unsigned> {};

void run(unsigned seed) {
    std::mt19937 random(seed);
    const int64_t batches[] = {1, 65, 127}, batch = batches[random() % 3];
    const DrawnStep drawn = random_optimizer_step(seed, batch);
    static const std::string policies[] = {"f32",       "bf16",       "f16_master", "f16_scaled", "amp_f16", "amp_bf16", "f8_master",
                                           "f8_scaled", "f8_current", "f8_delayed", "f8_block",   "f8_row",  "mxfp8",    "state8"};
    const std::string name = policies[random() % std::size(policies)];
    SCOPED_TRACE("seed " + std::to_string(seed) + ", batch " + std::to_string(batch) + ", policy " + name + "\n" +
                 to_string(drawn.program));
    CompileOptions options;
    options.policy = load_policy(std::string(SCALIDE_RULES_DIR) + "/policies/" + name + ".yaml");
    const CompiledProgram compiled(drawn.program, rules(), options.policy);
    const Program reference = options.policy.intermediates ? compiled.fused() : to_base_operators(drawn.program, rules(), options);
    std::vector<Array> inputs = first_inputs(compiled.fused(), drawn.states);
    for (int step = 0; step < steps; step++) {
        SCOPED_TRACE("step " + std::to_string(step));
        draw_batch(compiled.fused(), random, inputs);
        const std::vector<Array> results = compiled.run(inputs);
        EXPECT_EQ(difference(results, interpret_with_errors(reference, inputs, rules(), Mode::stored)), "");
        expect_finite(compiled.fused(), results);
        for (size_t r = 0; r < results.size(); r++)
            if (compiled.fused().results[r].argument >= 0) inputs[static_cast<size_t>(compiled.fused().results[r].argument)] = results[r];
    }
}

TEST_P(Optimizers, steps_equal_interpreted) { run(GetParam()); }

std::string name_of(const testing::TestParamInfo<unsigned> &test) { return std::to_string(test.param); }

INSTANTIATE_TEST_SUITE_P(sample, Optimizers, testing::Range(0u, 20u), name_of);
INSTANTIATE_TEST_SUITE_P(long_run, Optimizers, testing::Range(20u, 1000u), name_of);

} // namespace

} // namespace scalide
