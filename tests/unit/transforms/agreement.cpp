#include "ir/text.h"
#include "ir/verify.h"
#include "support.h"
#include "support/programs/random_program.h"
#include "support/rounding_errors/running_error.h"
#include "transforms/pipeline.h"
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
        if (stored.empty()) stored = bits;
        EXPECT_TRUE(same_bits(stored, bits)) << pass << "\n" << to_string(made);
    };
    compile(program, rules(), options);
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

} // namespace scalide
