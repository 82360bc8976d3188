// Bind chooses the variant for the machine and the form for the values of the symbols before it makes a binding.
#include "allocation.h"
#include "constants_program.h"
#include <string>

using namespace scalide::test;

namespace {

/// A copy of a program with another name and these variants.
struct Named {
    scalide_program program;
    std::vector<scalide_variant> variants;

    Named(const scalide_program &of, const char *name, const std::vector<scalide_variant> &variants = {})
        : program(of), variants(variants) {
        program.name = name;
        program.variants = this->variants.data();
        program.variant_count = static_cast<int32_t>(variants.size());
    }
    Named(const Named &) = delete;
    Named &operator=(const Named &) = delete;
};

scalide_variant for_cpus(const Named &variant) { return {0, &variant.program, 0, {}, {}}; }

/// The form for bindings whose first symbol has a value.
scalide_variant form(const Named &variant, int64_t value) { return {0, &variant.program, 1, {0}, {value}}; }

/// Returns the name of the program that a binding of the sample runs, or the message of scalide_bind.
std::string bound(const Named &named, int64_t b) {
    Context context(1);
    Sample sample(b);
    Bound binding;
    const float expected = sample.expected_y(1);
    if (bind(context, &named.program, sample, &binding.handle) != SCALIDE_OK) return scalide_message(context.handle);
    EXPECT_EQ(scalide_run(binding.handle), SCALIDE_OK);
    EXPECT_EQ(sample.y[1], expected);
    return scalide_binding_program(binding.handle)->name;
}

/// Returns the number of allocations of scalide_bind.
template<typename Arrays>
int allocations_of_bind(const scalide_program &program, const Arrays &arrays) {
    Context context(1);
    Bound binding;
    const int before = allocations_made;
    EXPECT_EQ(scalide_bind(context.handle, &program, arrays.data(), arrays.size(), &binding.handle), SCALIDE_OK)
        << scalide_message(context.handle);
    return allocations_made - before;
}

/// Lets each allocation of scalide_bind fail in turn. Returns how many did.
template<typename Arrays>
int fail_each_allocation_of_bind(const scalide_program &program, const Arrays &arrays) {
    Context context(1);
    const int before = allocations_live;
    for (int failing = 0;; ++failing) {
        scalide_binding *binding = nullptr;
        allocations_made = 0;
        allocation_to_fail = failing;
        const scalide_status status = scalide_bind(context.handle, &program, arrays.data(), arrays.size(), &binding);
        allocation_to_fail = -1;
        EXPECT_EQ(binding != nullptr, status == SCALIDE_OK) << failing;
        scalide_binding_destroy(binding);
        EXPECT_EQ(allocations_live, before) << failing;
        if (status == SCALIDE_OK) return failing;
        EXPECT_EQ(status, SCALIDE_OUT_OF_MEMORY);
        EXPECT_NE(std::string(scalide_message(context.handle)).find("out of memory"), std::string::npos);
    }
}

/// A program without steps: 3 inputs, and a symbol for each of their 24 extents.
struct ManySymbols {
    std::vector<scalide_symbol> symbols{24, {"b", 1, 9, 1, SCALIDE_FROM_ARGUMENTS, -1, nullptr}};
    std::vector<scalide_term> terms;
    std::vector<scalide_extent> shape;
    std::vector<scalide_buffer> buffers;
    std::vector<scalide_argument> arguments;
    std::vector<scalide_array> arrays;
    std::vector<float> data = std::vector<float>(9);
    scalide_program program = WeightedPlan::program_of(24, 3, 3);

    ManySymbols() {
        for (int32_t i = 0; i < 24; ++i) terms.push_back({1, {i, -1, -1, -1}});
        for (const scalide_term &term : terms) shape.push_back({&term, 1});
        const int64_t ones[] = {1, 1, 1, 1, 1, 1, 1, 1};
        for (int32_t i = 0; i < 3; ++i) {
            buffers.push_back(
                {"x", SCALIDE_F32, 8, &shape[static_cast<size_t>(8 * i)], SCALIDE_STORAGE_DATA, i, -1, -1, 0, nullptr, nullptr});
            arguments.push_back({"x", SCALIDE_INPUT, i, -1, 0});
            arrays.push_back(scalide_dense_array(data.data(), nullptr, SCALIDE_F32, 8, ones));
        }
        arrays[2].extent[7] = 9; // the last symbol
        program.symbols = symbols.data();
        program.buffers = buffers.data();
        program.arguments = arguments.data();
        program.step_count = 0;
    }
    ManySymbols(const ManySymbols &) = delete;
    ManySymbols &operator=(const ManySymbols &) = delete;
};

} // namespace

TEST(forms, are_chosen_by_the_values_of_symbols) {
    const Named six(*sample_program(), "six"), again(six.program, "again"), eight(six.program, "eight");
    const scalide_variant none = {0, nullptr, 1, {0}, {6}};
    const Named any(*sample_program(), "any", {none, form(six, 6), form(again, 6), form(eight, 8)});
    EXPECT_EQ(bound(any, 6), "six");
    EXPECT_EQ(bound(any, 8), "eight");
    EXPECT_EQ(bound(any, 4), "any");
}

TEST(forms, are_those_of_the_variant_for_the_machine) {
    const Named six(*sample_program(), "six"), deep(six.program, "deep"), eight(six.program, "eight", {for_cpus(deep)});
    const Named wide_six(six.program, "wide six"), wide(six.program, "wide", {form(wide_six, 6)});
    Named latest(wide.program, "latest");
    latest.program.target = "x86-64-linux-latest";
    const std::vector<scalide_variant> forms = {form(six, 6), form(eight, 8)};
    std::vector<scalide_variant> variants = forms;
    variants.insert(variants.end(), {for_cpus(wide), for_cpus(latest)});
    const Named any(*sample_program(), "any", forms), of_machines(*sample_program(), "any", variants);
    EXPECT_EQ(bound(any, 6), "six");
    EXPECT_EQ(bound(any, 8), "deep");
    EXPECT_EQ(bound(of_machines, 6), "wide six");
    EXPECT_EQ(bound(of_machines, 8), "wide");
}

TEST(forms, are_checked_as_their_programs_are) {
    Named six(*sample_program(), "six");
    const Named any(*sample_program(), "any", {form(six, 6)});
    six.program.target = "x86-64-linux-latest";
    EXPECT_EQ(bound(any, 6).find("six: the CPU must have all features of the target x86-64-linux-latest, but"), 0u) << bound(any, 6);
    EXPECT_EQ(bound(any, 8), "any");
    six.program.plan_version = 1;
    EXPECT_EQ(bound(any, 6).find("six: plan version must be "), 0u) << bound(any, 6);
    six.program.plan_version = SCALIDE_PLAN_VERSION;
    six.program.target = any.program.target;
    std::vector<scalide_buffer> buffers{any.program.buffers, any.program.buffers + any.program.buffer_count};
    buffers[0].dtype = SCALIDE_F16;
    six.program.buffers = buffers.data();
    EXPECT_EQ(bound(any, 6), "six.x: dtype must be f16, got f32. Convert the array, or build the program with another policy.");
}

TEST(forms, are_bound_without_a_binding_of_their_program) {
    const Sample sample(6);
    const Named six(*sample_program(), "six"), wide(six.program, "wide", {form(six, 6)}), any(six.program, "any", {for_cpus(wide)});
    const int of_six = allocations_of_bind(six.program, sample.arrays);
    EXPECT_GT(of_six, 0);
    EXPECT_EQ(allocations_of_bind(any.program, sample.arrays), of_six);
    EXPECT_EQ(fail_each_allocation_of_bind(any.program, sample.arrays), of_six);
}

TEST(forms, of_many_symbols_are_bound_without_a_binding_of_their_program) {
    const ManySymbols many;
    const Named nine(many.program, "nine"), one(many.program, "one");
    const scalide_variant of_last[] = {{0, &one.program, 1, {23}, {1}}, {0, &nine.program, 2, {23, 0}, {9, 1}}};
    const Named any(many.program, "any", {of_last[0], of_last[1]});
    Context context(1);
    Bound binding;
    ASSERT_EQ(scalide_bind(context.handle, &any.program, many.arrays.data(), 3, &binding.handle), SCALIDE_OK)
        << scalide_message(context.handle);
    EXPECT_STREQ(scalide_binding_program(binding.handle)->name, "nine");
    const int of_nine = allocations_of_bind(nine.program, many.arrays);
    EXPECT_EQ(allocations_of_bind(any.program, many.arrays), of_nine);
    EXPECT_EQ(fail_each_allocation_of_bind(any.program, many.arrays), of_nine);
}

TEST(forms, have_the_constants_of_their_program) {
    WeightedPlan plan;
    Weighted weighted(3, 5);
    const Named five(plan.main, "five");
    const int of_five = allocations_of_bind(five.program, weighted.arrays);
    const scalide_variant variant = form(five, 5);
    plan.main.variants = &variant;
    plan.main.variant_count = 1;
    EXPECT_EQ(allocations_of_bind(plan.main, weighted.arrays), of_five);
    EXPECT_EQ(fail_each_allocation_of_bind(plan.main, weighted.arrays), of_five);
    Context context;
    Bound binding;
    scalide_constants *constants = weighted.prepare(context, plan);
    weighted.arrays[1] = {};
    EXPECT_EQ(scalide_bind_constants(context.handle, &plan.main, weighted.arrays.data(), 3, constants, &binding.handle), SCALIDE_OK)
        << scalide_message(context.handle);
    scalide_constants_destroy(constants); // the binding holds them
    EXPECT_STREQ(scalide_binding_program(binding.handle)->name, "five");
    EXPECT_EQ(scalide_run(binding.handle), SCALIDE_OK);
    EXPECT_EQ(weighted.y, std::vector<float>(5, 24));
}

TEST(forms, leave_nothing_behind_if_they_cannot_be_bound) {
    WeightedPlan plan;
    const WeightedPlan other;
    const Weighted weighted(3, 5);
    const Named five(other.main, "five");
    const scalide_variant variant = form(five, 5);
    plan.main.variants = &variant;
    plan.main.variant_count = 1;
    Context context;
    scalide_binding *binding = nullptr;
    const int before = allocations_live;
    EXPECT_EQ(scalide_bind(context.handle, &plan.main, weighted.arrays.data(), 3, &binding), SCALIDE_INVALID_ARGUMENT);
    EXPECT_STREQ(scalide_message(context.handle), "five: the constants must be prepared for this program and, on a device, in this "
                                                  "context. Call scalide_prepare with them.");
    EXPECT_EQ(binding, nullptr);
    EXPECT_EQ(allocations_live, before);
}
