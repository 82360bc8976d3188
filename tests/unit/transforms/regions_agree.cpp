#include "ir/regions.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "support.h"
#include "support/programs/program_of_operators.h"
#include "support/programs/program_of_regions.h"
#include "support/rounding_errors/running_error.h"
#include "transforms/pipeline.h"
#include <cmath>
#include <gtest/gtest.h>

// Random programs of loops and branches mean the same after each pass. Only assign_numerics and propagate_scales may change bits.

namespace scalide {

namespace {

bool is_same(double a, double b) { return a == b ? std::signbit(a) == std::signbit(b) : std::isnan(a) && std::isnan(b); }

bool have_same_bits(const std::vector<Array> &a, const std::vector<Array> &b) {
    bool are_same = a.size() == b.size();
    for (size_t i = 0; are_same && i < a.size(); i++)
        are_same = std::equal(a[i].data.begin(), a[i].data.end(), b[i].data.begin(), b[i].data.end(), is_same);
    return are_same;
}

/// Matmuls of operands that are rounded, with and without scales of their own.
Policy rounding_policy(bool is_scaled) {
    const std::string scaled = "{op: dot_general, operand: any, scale: {by: max}, store: f8_e4m3fn, optional: true}, "
                               "{op: [tanh, add], result: any, store: bf16, optional: true}",
                      plain = "{op: [dot_general, mul], operand: any, store: bf16, optional: true}";
    return parse_policy("policy: rounds\nrules: [" + (is_scaled ? scaled : plain) + "]\n", "policy.yaml");
}

/// Regions of programs, with their arguments.
struct Regions {
    size_t count = 0, arguments = 0;

    void add(const Program &program) {
        visit_programs(program, [&](const Program &region) {
            count += &region != &program;
            arguments += &region != &program ? region.arguments.size() : 0;
        });
    }
};

void expect_passes_agree(Regions &drawn, Regions &simplified, unsigned seed, const Policy &policy) {
    std::mt19937 random(seed);
    const Program program = program_of_regions(random);
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + to_string(program));
    const Program typed = infer_types(program, rules());
    const std::vector<Array> inputs = draw_inputs(typed, {{"b", 3}}, random);
    const std::vector<Array> expected = interpret_with_errors(typed, inputs, rules(), Mode::real);
    std::vector<Array> stored;
    CompileOptions options;
    options.policy = policy;
    options.unroll = Unroll::none;
    options.after_pass = [&](const std::string &pass, const Program &made) {
        if (testing::Test::HasFailure()) return;
        EXPECT_EQ(difference(interpret(made, inputs, rules(), Mode::real), expected, 1), "") << pass << "\n" << to_string(made);
        if (pass == "copy_shared_results") EXPECT_EQ(to_string(parse_program(to_string(made), "dump")), to_string(made));
        if (pass == "inline_calls") drawn.add(made);
        if (pass == "simplify_3") simplified.add(made);
        if (pass == "assign_numerics" || pass == "propagate_scales") stored.clear();
        const std::vector<Array> bits = interpret(made, inputs, rules(), Mode::stored);
        if (stored.empty()) stored = bits;
        EXPECT_TRUE(have_same_bits(stored, bits)) << pass << "\n" << to_string(made);
    };
    compile(program, rules(), options);
}

} // namespace

TEST(transforms, regions_agree_after_every_pass) {
    Regions drawn, simplified;
    for (unsigned seed = 0; seed < 240 && !HasFailure(); seed++)
        expect_passes_agree(drawn, simplified, seed, seed % 3 == 0 ? Policy() : rounding_policy(seed % 3 == 1));
    EXPECT_GT(simplified.count, 200u);
    EXPECT_GT(drawn.count, simplified.count * 5 / 4) << "simplify must inline loops of one step, and branches that are known";
    EXPECT_GT(drawn.arguments, simplified.arguments * 2) << "simplify must remove what regions do not need";
}

} // namespace scalide
