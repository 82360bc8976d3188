#include "ir/text.h"
#include "ir/verify.h"
#include "support.h"
#include "support/programs/random_program.h"
#include "support/programs/random_recipe.h"
#include "support/rounding_errors/running_error.h"
#include "transforms/pipeline.h"
#include <algorithm>
#include <cmath>
#include <functional>
#include <gtest/gtest.h>

namespace scalide {

namespace {

/// A random program and its gradients.
Program random_training_program(std::mt19937 &random) {
    Program program = random_program(random, 10);
    std::vector<ValueId> wrt;
    for (const Argument &argument : program.arguments) wrt.push_back(argument.value);
    for (const ValueId gradient : append_gradient(program, rules(), program.results[0].value, wrt)) {
        program.results.push_back({program.value_name(gradient), gradient});
    }
    return program;
}

Insertion convert(const char *dtype) { return {"convert_element_type", {{"dtype", dtype}}}; }

Insertion rescale(double to) { return {"dynamic_rescale", {{"norm", "max"}, {"to", to}}}; }

/// Operands of contractions in f8, rescaled, activations in bf16.
Policy narrow_policy() {
    using Place = PolicyRule::Place;
    Policy policy;
    policy.rules.push_back({Place::operand, "primal", "", {"dot_general"}, {}, {rescale(224), convert("f8_e4m3fn")}, {}, {}, {}});
    policy.rules.push_back({Place::operand, "cotangent", "", {"dot_general"}, {}, {rescale(28672), convert("f8_e5m2")}, {}, {}, {}});
    policy.rules.push_back({Place::node_result, "any", "", {"relu", "gelu", "silu"}, {}, {}, Dtype::bf16, {}, {}});
    for (PolicyRule &row : policy.rules) row.optional = true;
    return policy;
}

bool same_bits(const std::vector<Array> &a, const std::vector<Array> &b) {
    for (size_t i = 0; i < a.size(); i++) {
        for (size_t j = 0; j < a[i].data.size(); j++) {
            const double x = a[i].data[j], y = b[i].data[j];
            const bool equal = x == y ? std::signbit(x) == std::signbit(y) : std::isnan(x) && std::isnan(y);
            if (!equal) return false;
        }
    }
    return true;
}

/// Of the errors that roundings to f32 have: folded constants are rounded so, which mode `real` sees; all else is in f64.
constexpr double up_to_constants = 1, exactly = 0x1p-26;

/// Runs a pass on random programs, and compares what they mean before and after.
void expect_agreement(const std::string &name, double share, const std::function<Program(const Program &)> &pass) {
    for (uint32_t seed = 1; seed <= 20; seed++) {
        std::mt19937 random(seed);
        const Program before = random_training_program(random);
        SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + to_string(before));
        const Program after = pass(before);
        verify(after, name);
        EXPECT_EQ(to_string(after), to_string(infer_types(parse_program(to_string(after), "dump"), rules())));
        const std::vector<Array> inputs = random_inputs(before, random);
        const auto expected = interpret_with_errors(before, inputs, rules(), Mode::real);
        EXPECT_EQ(difference(interpret(after, inputs, rules(), Mode::real), expected, share), "") << to_string(after);
        if (testing::Test::HasFailure()) return;
    }
}

/// The inputs of a program whose scaled arguments have become data and scale: a power of two, different for each.
std::vector<Array> split_scaled(const Program &program, const std::vector<Array> &inputs) {
    std::vector<Array> parts;
    for (size_t i = 0; i < inputs.size(); i++) {
        parts.push_back(inputs[i]);
        if (!program.arguments[i].scaled) continue;
        const double scale = std::ldexp(1.0, 2 * static_cast<int>(i) - 3);
        for (double &element : parts.back().data) element /= scale;
        parts.push_back({Dtype::f32, {}, {scale}});
    }
    return parts;
}

/// Compiles a program; what each pass makes must mean the same, and from propagate_scales on be the same to the last bit.
void expect_compile_agrees(const Program &program, const std::vector<Array> &inputs) {
    const std::vector<Array> parts = split_scaled(program, inputs);
    const std::vector<Array> expected = interpret_with_errors(program, inputs, rules(), Mode::real);
    std::vector<Array> stored;
    bool propagated = false;
    CompileOptions options;
    options.policy = narrow_policy();
    options.after_pass = [&](const std::string &pass, const Program &made) {
        propagated = propagated || pass == "propagate_scales";
        const auto got = interpret(made, propagated ? parts : inputs, rules(), Mode::real);
        EXPECT_EQ(difference(got, expected, up_to_constants), "") << pass;
        if (!propagated) return;
        const auto bits = interpret(made, parts, rules(), Mode::stored);
        if (stored.empty() || pass == "choose_accuracy") stored = bits; // this pass changes how functions are computed
        EXPECT_TRUE(same_bits(stored, bits)) << pass << "\n" << to_string(made);
    };
    compile(program, rules(), options);
}

/// A state of a tensor: `x.scale` is the state `scale` of `x`.
struct StateOfTensor {
    std::string tensor;
    const PolicyState *state; ///< null: not a state of a tensor
};

StateOfTensor state_of_tensor(const Policy &policy, const std::string &name) {
    const size_t dot = std::min(name.rfind('.'), name.size() - 1);
    const PolicyState *state = policy.find_state(name.substr(dot + 1));
    return {name.substr(0, dot), state && state->per == PolicyState::Per::tensor ? state : nullptr};
}

/// Returns the largest magnitude of a value of the program. A part of a composite operator is none.
std::optional<double> amax_of(Program program, const std::string &value, const std::vector<Array> &inputs) {
    const auto found = std::ranges::find(program.values, value, &Value::name);
    if (found == program.values.end()) return {};
    program.results = {{"value", static_cast<ValueId>(found - program.values.begin())}};
    const std::vector<Array> results = interpret(program, inputs, rules(), Mode::real);
    double amax = 0;
    for (const double element : results[0].data) amax = std::max(amax, std::abs(element));
    return amax;
}

} // namespace

TEST(transforms, simplify_keeps_every_bit) {
    for (uint32_t seed = 1; seed <= 20; seed++) {
        std::mt19937 random(seed);
        const Program before = random_training_program(random);
        const Program after = simplify(before, rules());
        const std::vector<Array> inputs = random_inputs(before, random);
        SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + to_string(before) + to_string(after));
        ASSERT_TRUE(same_bits(interpret(before, inputs, rules(), Mode::stored), interpret(after, inputs, rules(), Mode::stored)));
    }
}

TEST(transforms, simplify_agrees) {
    expect_agreement("simplify", up_to_constants, [](const Program &program) { return simplify(program, rules()); });
}

TEST(transforms, expand_agrees) {
    expect_agreement("expand", exactly, [](const Program &program) { return expand(program, rules()); });
}

TEST(transforms, assign_numerics_agrees) {
    expect_agreement("assign_numerics", exactly, [](const Program &program) { return assign_numerics(program, rules(), narrow_policy()); });
}

TEST(transforms, all_passes_agree) {
    expect_agreement("all", up_to_constants, [](const Program &program) {
        Program made = simplify(inline_calls(infer_types(program, rules()), rules()), rules());
        made = simplify(assign_numerics(made, rules(), narrow_policy()), rules());
        return simplify(expand(propagate_scales(made, rules(), {}), rules()), rules());
    });
}

TEST(transforms, compile_agrees_after_every_pass) {
    for (uint32_t seed = 1; seed <= 20; seed++) {
        std::mt19937 random(seed);
        Program program = random_training_program(random);
        for (Argument &argument : program.arguments) argument.scaled = random() % 2 == 0;
        SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + to_string(program));
        expect_compile_agrees(program, random_inputs(program, random));
        if (HasFailure()) return;
    }
}

/// Recipes change no value but by rounding, and the state of a tensor is what it says about the tensor of the program.
TEST(transforms, assign_numerics_agrees_in_random_recipes) {
    for (uint32_t seed = 1; seed <= 100; seed++) {
        std::mt19937 random(seed);
        const Program before = random_training_step(random, 6);
        const std::string recipe = random_recipe(random);
        if (recipe.find("hashed_round") != std::string::npos) continue; // rounds in mode `real` too
        const Policy policy = parse_policy(recipe, "recipe.yaml");
        const Program after = assign_numerics(before, rules(), policy);
        verify(after, "assign_numerics");
        SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + recipe + to_string(after));
        const std::vector<Array> inputs = random_inputs(before, random);
        std::vector<Array> with_state = random_inputs(after, random);
        std::ranges::copy(inputs, with_state.begin());
        for (size_t i = inputs.size(); i < with_state.size(); i++)
            std::ranges::fill(with_state[i].data, static_cast<double>(*after.arguments[i].initial));
        std::vector<Array> results = interpret(after, with_state, rules(), Mode::real);
        for (size_t r = before.results.size(); r < results.size(); r++) {
            const auto [tensor, state] = state_of_tensor(policy, after.results[r].name);
            if (!state || state->next.op == "delayed_scale") continue;
            const std::optional<double> amax = amax_of(before, tensor, inputs);
            if (!amax) continue;
            const double expected = state->next.op == "running_amax" ? std::max(*amax, static_cast<double>(state->initial)) : *amax;
            EXPECT_NEAR(results[r].data[0], expected, 1e-9 * expected) << after.results[r].name;
        }
        results.resize(before.results.size());
        EXPECT_EQ(difference(results, interpret_with_errors(before, inputs, rules(), Mode::real), exactly), "");
        if (HasFailure()) return;
    }
}

} // namespace scalide
