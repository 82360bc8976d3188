#include "interpret/interpret.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "support/programs/random_base_program.h"
#include "support/programs/random_program.h"
#include "transforms/analysis/passes.h"
#include <algorithm>
#include <bit>
#include <gtest/gtest.h>

namespace scalide {

namespace {

using Memory = std::map<ValueId, Array>;

/// Runs a program of kernels as a plan does: call by call, a new value of an inout argument in the place of the old one.
std::vector<Array> run_kernels(const Program &program, const std::vector<Array> &inputs, const Rulebook &rulebook) {
    Memory memory;
    for (size_t i = 0; i < inputs.size(); ++i) memory[program.arguments[i].value] = inputs[i];
    for (const Node &call : program.nodes) {
        const Program &kernel = program.program(call.attributes.at("program").word);
        std::vector<Array> operands;
        for (ValueId operand : call.operands) operands.push_back(memory.at(operand));
        const std::vector<Array> results = interpret(kernel, operands, rulebook, Mode::stored);
        for (size_t i = 0; i < results.size(); ++i) {
            memory[call.results[i]] = results[i];
            for (const Result &result : program.results)
                if (result.argument >= 0 && result.value == call.results[i]) memory[program.arguments[result.argument].value] = results[i];
        }
    }
    std::vector<Array> outputs;
    for (const Result &result : program.results)
        outputs.push_back(memory.at(result.argument < 0 ? result.value : program.arguments[result.argument].value));
    return outputs;
}

bool same_bits(const Array &a, const Array &b) {
    return a.dtype == b.dtype && a.shape == b.shape && std::ranges::equal(a.data, b.data, [](double x, double y) {
               return std::bit_cast<uint64_t>(x) == std::bit_cast<uint64_t>(y) || (x != x && y != y);
           });
}

std::vector<Array> sixteenths_for(const Program &program, std::mt19937 &random) {
    std::uniform_int_distribution<int> sixteenths(-32, 32);
    std::vector<Array> inputs = zero_inputs(program, {});
    for (Array &input : inputs)
        for (double &element : input.data) element = sixteenths(random) / 16.0;
    return inputs;
}

/// An overwritten argument is read in place or not at all, and every kernel has a kind.
void check_kernels(const Program &fused) {
    for (const Node &call : fused.nodes) {
        ASSERT_EQ(call.op, "call");
        const Program &kernel = fused.program(call.attributes.at("program").word);
        EXPECT_TRUE(kernel.attributes.contains("kind"));
        for (size_t i = 0; i < kernel.results.size(); ++i)
            for (const Result &result : fused.results) {
                if (result.argument < 0 || result.value != call.results[i]) continue;
                const auto operand = std::ranges::find(call.operands, fused.arguments[result.argument].value);
                if (operand != call.operands.end()) EXPECT_EQ(kernel.results[i].argument, operand - call.operands.begin());
            }
    }
}

/// A library that is hard to please and does all else.
const TargetFacts library = {
    "cuda",
    {{"lib",
      Dtype::f32,
      Dtype::f32,
      {{Dtype::f32, Overflow::format, {Dtype::f32}, {Dtype::f32}}, {Dtype::f16, Overflow::saturate, {Dtype::f32}, {Dtype::f32}, true}},
      true,
      4}}};

void check_program(const Program &program, std::mt19937 &random, const Rulebook &rulebook, const TargetFacts &facts) {
    verify(program, "");
    const Program fused = fuse(program, facts);
    verify(fused, "fuse");
    check_kernels(fused);
    const std::vector<Array> inputs = sixteenths_for(program, random);
    const std::vector<Array> expected = interpret(program, inputs, rulebook, Mode::stored), got = run_kernels(fused, inputs, rulebook);
    ASSERT_EQ(expected.size(), got.size());
    for (size_t i = 0; i < got.size(); ++i)
        ASSERT_TRUE(same_bits(expected[i], got[i])) << program.results[i].name << " differs in\n" << to_string(fused);
}

void check_text(const std::string &text) {
    std::mt19937 random(1);
    check_program(parse_program(text, "test.scl"), random, Rulebook::load({SCALIDE_RULES_DIR}), {});
}

} // namespace

// The new value of `a` is read by what overwrites `b`, so `a` gets a copy. Then the maximum, which reads the old `b`, is stored nowhere.
TEST(transforms, fuse_orders_readers_of_arguments_behind_a_copy) {
    const std::string text = "program test(v: f32[5], a: f32[3, 5] inout, b: f32[3, 5] inout) -> (a = v1, b = b1, c: f32[3, 5]) {\n"
                             "v1 = broadcast_in_dim(v) {dims: [1], shape: [3, 5]} : f32[3, 5]\n"
                             "top = max(b, v1) : f32[3, 5]\n"
                             "p = gt(v1, top) : bool[3, 5]\n"
                             "b1 = select_n(p, a, top) : f32[3, 5]\n"
                             "q = gt(b1, v1) : bool[3, 5]\n"
                             "c = select_n(q, top, v1) : f32[3, 5]\n"
                             "}\n";
    check_text(text);
}

// The old `now` goes to `before`, whose old value the new `now` needs. The sum is stored first, because one kernel that computes the sum
// again would have to run before the copy and after it.
TEST(transforms, fuse_repeats_nothing_that_two_overwrites_need_in_a_circle) {
    const std::string text = "program test(x: f32[3, 5], before: f32[3, 5] inout, now: f32[3, 5] inout) -> (before = now, now = next) {\n"
                             "p = gt(x, x) : bool[3, 5]\n"
                             "s = select_n(p, x, x) : f32[3, 5]\n"
                             "sum = add(before, s) : f32[3, 5]\n"
                             "next = max(s, sum) : f32[3, 5]\n"
                             "}\n";
    check_text(text);
}

TEST(transforms, fuse_changes_no_bit_of_random_programs) {
    const Rulebook rulebook = Rulebook::load({SCALIDE_RULES_DIR});
    const unsigned first_seed = std::random_device()();
    for (unsigned trial = 0; trial < 400; ++trial) {
        std::mt19937 random(first_seed + trial);
        const Program program = test::random_base_program(random, 4 + static_cast<int>(trial) % 40);
        SCOPED_TRACE("seed " + std::to_string(first_seed + trial) + "\n" + to_string(program));
        ASSERT_NO_THROW(check_program(program, random, rulebook, trial % 2 ? library : TargetFacts()));
        if (HasFatalFailure()) return;
    }
}

} // namespace scalide
