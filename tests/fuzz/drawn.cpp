#include "fuzz/choices.h"
#include "fuzz/target.h"
#include "support/programs/program_of_operators.h"
#include "support/programs/program_of_shapes.h"
#include "support/programs/random_base_program.h"
#include "support/programs/random_program.h"
#include "support/programs/random_recipe.h"
#include "support/programs/rules.h"
#include "transforms/pipeline.h"
#include <random>

namespace {

using namespace scalide;

Policy shipped(const std::string &name) { return load_policy(SCALIDE_RULES_DIR "/policies/" + name + ".yaml"); }

Program with_gradients(Program program) {
    std::vector<ValueId> arguments;
    for (const Argument &argument : program.arguments) {
        if (program.type(argument.value).dtype == Dtype::f32) arguments.push_back(argument.value);
    }
    const std::vector<ValueId> gradients = append_gradient(program, rules(), program.results[0].value, arguments);
    for (size_t i = 0; i < gradients.size(); i++) program.results.push_back({"gradient" + std::to_string(i), gradients[i]});
    return program;
}

Program draw_program(size_t kind, int count, std::mt19937 &random) {
    switch (kind) {
    case 0: return program_of_operators(random, count);
    case 1: return with_gradients(random_program(random, count));
    case 2: return random_program(random, count);
    case 3: return test::random_base_program(random, count);
    case 4: return random_training_step(random, count);
    default: return program_of_shapes(random, count);
    }
}

} // namespace

// Programs that are right, of all operators, in our numerics or in recipes that are drawn: texts that mutations never reach. The first
// bytes choose, the rest are the seed.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const std::array policies = {shipped("f32"),        shipped("bf16"),      shipped("f16_scaled"), shipped("f8_scaled"),
                                        shipped("f16_master"), shipped("f8_master"), shipped("mxfp8"),      shipped("f8_block"),
                                        shipped("f8_row"),     shipped("f8_delayed")};
    Choices choices(data, size);
    const size_t kind = choices.below(6);
    const int count = 1 + static_cast<int>(choices.below(6));
    CompileOptions options;
    const size_t policy = choices.below(policies.size() + 6);
    options.policy = policies[policy % policies.size()];
    options.policy.round_every_node = choices.below(8) == 1;
    options.policy.propagates = choices.below(4) == 1;
    std::vector<uint8_t> rest;
    while (!choices.empty()) rest.push_back(choices.byte());
    std::seed_seq seed(rest.begin(), rest.end());
    std::mt19937 random(seed);
    try {
        Program program = draw_program(kind, count, random);
        if (policy >= policies.size()) {
            options.policy = parse_policy(random_recipe(random), "recipe.yaml");
            program = with_scopes(std::move(program), random);
        }
        compile(program, rules(), options);
    } catch (const UserError &) {
    }
    return 0;
}
