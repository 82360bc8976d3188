#include "card/card.h"
#include "emit/library.h"
#include "gpu/opencl_kernel.h"
#include "guarded/card_kernel.h"
#include "guarded/child.h"
#include "guarded/guarded_run.h"
#include "guarded/shrink.h"
#include "ir/text.h"
#include "support/programs/program_of_compositions.h"
#include "support/programs/program_of_operators.h"
#include "support/programs/program_of_shapes.h"
#include "support/programs/random_program.h"
#include "support/programs/rules.h"
#include "transforms/analysis/passes.h"
#include "transforms/pipeline.h"
#include <filesystem>
#include <gtest/gtest.h>

// Random programs times random extents: each kernel on guarded and poisoned arrays, against the interpreter. The number in the name of a
// test is the seed; what fails is made smaller and printed as a text for tests/kernels. The long run is labelled slow.

namespace scalide {

namespace {

// Programs of ./check, of slow tests of other kinds, and of the long run.
constexpr unsigned sample_programs = 60, more_programs = 100, long_programs = 10000;
constexpr unsigned sample_compositions = 24, more_compositions = 40, long_compositions = 3100;

Policy policy_named(const std::string &name) {
    return load_policy(std::filesystem::path(SCALIDE_RULES_DIR) / "policies" / (name + ".yaml"));
}

Program with_gradients(Program program) {
    std::vector<ValueId> arguments;
    for (const Argument &argument : program.arguments)
        if (program.type(argument.value).dtype == Dtype::f32) arguments.push_back(argument.value);
    const std::vector<ValueId> gradients = append_gradient(program, rules(), program.results[0].value, arguments);
    for (size_t i = 0; i < gradients.size(); i++) program.results.push_back({"gradient" + std::to_string(i), gradients[i]});
    return program;
}

Program draw_program(unsigned seed, std::mt19937 &random) {
    switch (seed % 4) {
    case 0: return program_of_operators(random, 1 + int(random() % 4));
    case 1: return with_gradients(random_program(random, 1 + int(random() % 4)));
    default: return program_of_shapes(random, 2 + int(random() % 6));
    }
}

/// The programs of a suite: how they are drawn, in which numerics they are compiled, and which extents their symbols get.
struct Drawing {
    Program (*draw)(unsigned seed, std::mt19937 &random);
    std::vector<const char *> policies;
    std::vector<int64_t> extents; ///< ascending
    int bindings = 10;            ///< of a program with symbols
};

/// Vectors, blocks and panels plus and minus one, primes, and what is hardly anything.
Drawing all_programs(unsigned seed) {
    return {draw_program,
            {"f32", "f32", "bf16", "f16_scaled", "f8_scaled"},
            {0, 1, 2, 3, 4, 5, 7, 8, 9, 13, 15, 16, 17, 31, 32, 33, 47, 63, 64, 65, 97, 100, 127, 128, 129, 200, 255, 257, 513, 1031},
            seed < more_programs ? 10 : 20};
}

/// Extents below, at and above one panel of a matmul, and several panels.
Drawing compositions(unsigned seed) {
    return {program_of_compositions,
            {"f32", "f32", "bf16", "f8_master"},
            {0, 1, 3, 3, 17, 17, 63, 64, 65, 65, 100, 127, 129, 200, 257},
            seed < more_compositions ? 3 : 6};
}

/// Where kernels run, and how many elements an array may have there.
struct Device {
    std::string target;
    MakeKernel make;
    int64_t most_elements = 20000;
};

struct Drawn {
    Program program;
    Policy policy;
};

Drawn draw(unsigned seed, const Drawing &drawing, std::mt19937 &random) {
    Program program = drawing.draw(seed, random);
    return {std::move(program), policy_named(drawing.policies[random() % drawing.policies.size()])};
}

Program fuse_for(const Device &device, const Drawn &drawn) {
    CompileOptions options;
    BuildOptions build;
    build.target = device.target;
    options.facts = target_facts(build);
    options.policy = drawn.policy;
    return compile(drawn.program, rules(), options);
}

/// Not too many elements, nor products, for the interpreter; nor an extent beyond the largest, which is an error.
bool is_small(const Program &fused, const Extent::Bindings &sizes, int64_t most_elements) try {
    const int64_t most_squared = 100 * most_elements * most_elements; // (m n)(m k)(k n)
    for (const Program &kernel : fused.programs) {
        for (const Value &value : kernel.values)
            if (element_count(value.type.shape).evaluate(sizes) > most_elements) return false;
        for (const Node &node : kernel.nodes) {
            if (node.op != "dot_general") continue;
            int64_t squared = element_count(kernel.type(node.results[0]).shape).evaluate(sizes);
            for (const ValueId operand : node.operands) squared *= element_count(kernel.type(operand).shape).evaluate(sizes);
            if (squared > most_squared) return false;
        }
    }
    return true;
} catch (const UserError &) {
    return false;
}

Extent::Bindings draw_sizes(const Program &fused, const std::vector<int64_t> &extents, std::mt19937 &random, int64_t most_elements) {
    for (size_t most = extents.size();; most -= std::max<size_t>(most / 8, 1)) {
        Extent::Bindings sizes;
        for (const Symbol &symbol : fused.symbols) {
            const int64_t drawn = std::clamp(extents[random() % most], symbol.minimum, symbol.maximum);
            sizes[symbol.name] = drawn / symbol.multiple * symbol.multiple;
        }
        if (most <= 4 || is_small(fused, sizes, most_elements)) return sizes;
    }
}

void run_program(unsigned seed, const Drawing &drawing, const Device &device, const GuardedProgram::Tell &tell) {
    std::mt19937 random(seed);
    const Program fused = fuse_for(device, draw(seed, drawing, random));
    GuardedProgram program(fused, tell, device.make);
    for (int binding = 0; binding < (fused.symbols.empty() ? 1 : drawing.bindings); binding++)
        program.run(draw_sizes(fused, drawing.extents, random, device.most_elements), random);
}

ChildReport run_kernel(const BoundProgram &kernel, const Device &device) {
    return in_child([&](const auto &) {
        std::mt19937 random(1);
        run_guarded(device.make(kernel.program), kernel.program, draw_guarded_inputs(kernel.program, kernel.sizes, random), kernel.sizes);
    });
}

/// A death, a wrong value, an error of the compiler. Internal errors differ by their messages, up to the first number or line.
std::string sort_of(const std::string &wrong) {
    return wrong.substr(0, wrong.find_first_of(wrong.starts_with("internal error") ? "0123456789\n" : " :"));
}

Extent::Bindings sizes_of(const std::string &text) {
    Extent::Bindings sizes;
    std::istringstream words(text.substr(text.find(':') + 1, text.find('\n') - text.find(':') - 1));
    for (std::string word; words >> word;) sizes[word.substr(0, word.find('='))] = std::stoll(word.substr(word.find('=') + 1));
    return sizes;
}

/// The smallest kernel that fails in the same way; what failed itself, where that takes the values of its program.
std::string smallest_kernel(const ChildReport &failure, const Device &device) {
    const BoundProgram kernel{parse_program(failure.place, "kernel"), sizes_of(failure.place)};
    const auto fails = [&](const BoundProgram &smaller) { return sort_of(run_kernel(smaller, device).wrong) == sort_of(failure.wrong); };
    if (!fails(kernel)) return failure.place;
    const BoundProgram found = shrink(kernel, fails);
    return run_kernel(found, device).wrong + "\n" + kernel_case(found.program, found.sizes);
}

/// The smallest program whose passes fail in the same way.
std::string smallest_program(const ChildReport &failure, const Drawn &drawn, const Device &device) {
    const auto run = [&](const Program &program) {
        return in_child([&](const auto &) { fuse_for(device, {program, drawn.policy}); }).wrong;
    };
    const auto fails = [&](const BoundProgram &smaller) { return sort_of(run(smaller.program)) == sort_of(failure.wrong); };
    const Program found = shrink({drawn.program, {}}, fails).program;
    return run(found) + "\n" + to_string(found);
}

void expect_guarded(unsigned seed, const Drawing &drawing, const Device &device) {
    rules(); // once for all children
    const ChildReport report = in_child([&](const auto &tell) { run_program(seed, drawing, device, tell); });
    if (report.wrong.empty()) return;
    std::mt19937 random(seed);
    const Drawn drawn = draw(seed, drawing, random);
    ADD_FAILURE() << "seed " << seed << " in " << drawn.policy.name << ": " << report.wrong << "\n"
                  << (report.place.empty() ? smallest_program(report, drawn, device) : smallest_kernel(report, device)) << "\nof\n"
                  << to_string(drawn.program);
}

/// Its arrays are the driver's: there are no pages beside them.
RunKernel opencl_kernel(const Program &kernel) {
    return [compiled = std::make_shared<OpenclKernel>(kernel)](std::vector<Words> &arguments, const Extent::Bindings &sizes, Guard) {
        return compiled->can_run(sizes) ? std::optional(compiled->run(arguments, sizes)) : std::nullopt;
    };
}

/// Empty where OpenCL runs kernels. Asked in a child, because the threads of a driver do not survive a fork.
std::string why_no_opencl_here() {
    return in_child([](const auto &) {
               if (const auto why = why_no_opencl()) throw std::runtime_error(*why);
           })
        .wrong;
}

const Device host{"host", host_kernel}, checked{"host", checked_kernel, 2000}, opencl{"opencl", opencl_kernel};
const Device card{"cuda", card_kernel, 4000}; // a stand-in takes a second for 40000

class Guarded : public testing::TestWithParam<unsigned> {};
class GuardedChecked : public testing::TestWithParam<unsigned> {};
class GuardedOpencl : public testing::TestWithParam<unsigned> {
    void SetUp() override {
        if (const std::string why = why_no_opencl_here(); !why.empty()) GTEST_SKIP() << why;
    }
};
class GuardedCard : public testing::TestWithParam<unsigned> {
    void SetUp() override {
        if (const std::string &why = why_no_card(); !why.empty()) GTEST_SKIP() << why;
    }
};
class Compositions : public Guarded {};
class CompositionsChecked : public GuardedChecked {};
class CompositionsOpencl : public GuardedOpencl {};
class CompositionsCard : public GuardedCard {};

TEST_P(Guarded, kernels_stay_in_their_arrays) { expect_guarded(GetParam(), all_programs(GetParam()), host); }
TEST_P(GuardedChecked, no_access_leaves_an_array) { expect_guarded(GetParam(), all_programs(GetParam()), checked); }
TEST_P(GuardedOpencl, kernels_agree_with_the_interpreter) { expect_guarded(GetParam(), all_programs(GetParam()), opencl); }
TEST_P(GuardedCard, kernels_agree_with_the_interpreter) { expect_guarded(GetParam(), all_programs(GetParam()), card); }
TEST_P(Compositions, kernels_stay_in_their_arrays) { expect_guarded(GetParam(), compositions(GetParam()), host); }
TEST_P(CompositionsChecked, no_access_leaves_an_array) { expect_guarded(GetParam(), compositions(GetParam()), checked); }
TEST_P(CompositionsOpencl, kernels_agree_with_the_interpreter) { expect_guarded(GetParam(), compositions(GetParam()), opencl); }
TEST_P(CompositionsCard, kernels_agree_with_the_interpreter) { expect_guarded(GetParam(), compositions(GetParam()), card); }

std::string seed_of(const testing::TestParamInfo<unsigned> &test) { return std::to_string(test.param); }

INSTANTIATE_TEST_SUITE_P(sample, Guarded, testing::Range(0u, sample_programs), seed_of);
INSTANTIATE_TEST_SUITE_P(checked, GuardedChecked, testing::Range(0u, 12u), seed_of);
INSTANTIATE_TEST_SUITE_P(long_checked, GuardedChecked, testing::Range(12u, more_programs), seed_of);
INSTANTIATE_TEST_SUITE_P(opencl, GuardedOpencl, testing::Range(0u, 8u), seed_of);
INSTANTIATE_TEST_SUITE_P(long_opencl, GuardedOpencl, testing::Range(8u, more_programs), seed_of);
INSTANTIATE_TEST_SUITE_P(card, GuardedCard, testing::Range(0u, 8u), seed_of);
INSTANTIATE_TEST_SUITE_P(long_card, GuardedCard, testing::Range(8u, more_programs), seed_of);
INSTANTIATE_TEST_SUITE_P(long_run, Guarded, testing::Range(sample_programs, long_programs), seed_of);

INSTANTIATE_TEST_SUITE_P(compositions, Compositions, testing::Range(0u, sample_compositions), seed_of);
INSTANTIATE_TEST_SUITE_P(long_compositions, Compositions, testing::Range(sample_compositions, long_compositions), seed_of);
INSTANTIATE_TEST_SUITE_P(compositions_checked, CompositionsChecked, testing::Range(0u, 8u), seed_of);
INSTANTIATE_TEST_SUITE_P(long_compositions_checked, CompositionsChecked, testing::Range(8u, more_compositions), seed_of);
INSTANTIATE_TEST_SUITE_P(compositions_opencl, CompositionsOpencl, testing::Range(0u, 8u), seed_of);
INSTANTIATE_TEST_SUITE_P(long_compositions_opencl, CompositionsOpencl, testing::Range(8u, 3 * more_compositions), seed_of);
INSTANTIATE_TEST_SUITE_P(compositions_card, CompositionsCard, testing::Range(0u, 4u), seed_of);
INSTANTIATE_TEST_SUITE_P(long_compositions_card, CompositionsCard, testing::Range(4u, 3 * more_compositions), seed_of);

} // namespace

} // namespace scalide
