// Constants: prepared once, shared by bindings, replaced during runs. Also built with ThreadSanitizer (tests/threads).
#include "constants_program.h"
#include <atomic>
#include <thread>

using namespace scalide::test;

namespace {

TEST(runtime, bind_prepares_constants_and_runs_do_not_read_them) {
    const WeightedPlan plan;
    Context context;
    Weighted weighted(3);
    Bound binding;
    ASSERT_EQ(scalide_bind(context.handle, &plan.main, weighted.arrays.data(), 3, &binding.handle), SCALIDE_OK)
        << scalide_message(context.handle);
    weighted.w.assign(4, 100); // the prepared array has a copy
    ASSERT_EQ(scalide_run(binding.handle), SCALIDE_OK);
    EXPECT_EQ(weighted.y, std::vector<float>(5, 24));
    weighted.arrays[1].data = nullptr;
    ASSERT_EQ(scalide_set_arguments(binding.handle, weighted.arrays.data(), 3), SCALIDE_OK) << scalide_message(context.handle);
    ASSERT_EQ(scalide_run(binding.handle), SCALIDE_OK);
    EXPECT_EQ(weighted.y, std::vector<float>(5, 24));
}

TEST(runtime, bindings_of_two_contexts_share_constants) {
    const WeightedPlan plan;
    Context first, second;
    Weighted small(3, 2), large(0, 7);
    scalide_constants *constants = small.prepare(first, plan);
    EXPECT_EQ(scalide_constants_bytes(constants), 64u);
    small.arrays[1].data = nullptr;
    Bound one, other;
    ASSERT_EQ(scalide_bind_constants(first.handle, &plan.main, small.arrays.data(), 3, constants, &one.handle), SCALIDE_OK);
    ASSERT_EQ(scalide_bind_constants(second.handle, &plan.main, large.arrays.data(), 3, constants, &other.handle), SCALIDE_OK);
    scalide_constants_destroy(constants); // the bindings keep them alive
    ASSERT_EQ(scalide_run(one.handle), SCALIDE_OK);
    ASSERT_EQ(scalide_run(other.handle), SCALIDE_OK);
    EXPECT_EQ(small.y, std::vector<float>(2, 24));
    EXPECT_EQ(large.y, std::vector<float>(7, 24));
}

TEST(runtime, another_thread_replaces_constants_between_runs) {
    const WeightedPlan plan;
    Context context, preparing;
    Weighted weighted(1), doubled(2);
    scalide_constants *sets[] = {weighted.prepare(preparing, plan), doubled.prepare(preparing, plan)};
    Bound binding;
    ASSERT_EQ(scalide_bind_constants(context.handle, &plan.main, weighted.arrays.data(), 3, sets[0], &binding.handle), SCALIDE_OK);
    std::atomic<bool> ends{false};
    std::thread replacing([&] {
        for (int i = 0; !ends; ++i) EXPECT_EQ(scalide_set_constants(binding.handle, sets[i % 2]), SCALIDE_OK);
    });
    for (int run = 0; run < 2000; ++run) {
        ASSERT_EQ(scalide_run(binding.handle), SCALIDE_OK);
        const float first = weighted.y[0];
        ASSERT_TRUE(first == 8 || first == 16) << first;
        ASSERT_EQ(weighted.y, std::vector<float>(5, first));
    }
    ends = true;
    replacing.join();
    ASSERT_EQ(scalide_set_constants(binding.handle, sets[1]), SCALIDE_OK);
    for (scalide_constants *constants : sets) scalide_constants_destroy(constants);
    ASSERT_EQ(scalide_run(binding.handle), SCALIDE_OK);
    EXPECT_EQ(weighted.y[0], 16);
}

TEST(runtime, wrong_use_of_constants_is_refused) {
    const WeightedPlan plan, another;
    Context context;
    Weighted weighted(3);
    scalide_constants *constants = weighted.prepare(context, another), *own = weighted.prepare(context, plan);
    scalide_binding *none = nullptr;
    EXPECT_EQ(scalide_bind_constants(context.handle, &plan.main, weighted.arrays.data(), 3, constants, &none), SCALIDE_INVALID_ARGUMENT);
    EXPECT_STREQ(scalide_message(context.handle), "weighted: the constants must be prepared for this program and, on a device, in this "
                                                  "context. Call scalide_prepare with them.");
    Bound binding;
    ASSERT_EQ(scalide_bind_constants(context.handle, &plan.main, weighted.arrays.data(), 3, own, &binding.handle), SCALIDE_OK);
    EXPECT_EQ(scalide_set_constants(binding.handle, constants), SCALIDE_INVALID_ARGUMENT);
    EXPECT_EQ(scalide_set_argument(binding.handle, 1, &weighted.arrays[1]), SCALIDE_INVALID_ARGUMENT);
    EXPECT_STREQ(scalide_message(context.handle), "weighted.w: cannot replace a constant alone: the program has prepared it. Call "
                                                  "scalide_prepare and scalide_set_constants.");
    scalide_constants_destroy(constants);
    scalide_constants_destroy(own);
    weighted.arrays[1].dtype = SCALIDE_F16;
    EXPECT_EQ(scalide_prepare(context.handle, &plan.main, weighted.arrays.data(), 3, &constants), SCALIDE_INVALID_ARGUMENT);
    EXPECT_EQ(constants, nullptr);
    EXPECT_STREQ(scalide_message(context.handle),
                 "weighted.w: dtype must be f32, got f16. Convert the array, or build the program with another policy.");
}

TEST(runtime, wrong_prepare_programs_are_refused) {
    void (*const breaks[])(WeightedPlan &) = {
        [](WeightedPlan &plan) { plan.main.prepare = nullptr; },
        [](WeightedPlan &plan) { plan.buffers[3].index = 1; },
        [](WeightedPlan &plan) { plan.buffers[3].index = -1; },
        [](WeightedPlan &plan) { plan.buffers[3].dtype = SCALIDE_F16; },
        [](WeightedPlan &plan) { plan.buffers[3].shape = plan.b; },
        [](WeightedPlan &plan) { plan.prepare.prepare = &plan.prepare; },
        [](WeightedPlan &plan) { plan.prepare_arguments[1].role = SCALIDE_INPUT; },
        [](WeightedPlan &plan) { plan.prepare.plan_version = 1; },
        [](WeightedPlan &plan) { plan.arguments[1].role = SCALIDE_INPUT; },
    };
    for (const auto &damage : breaks) {
        WeightedPlan plan;
        damage(plan);
        Context context;
        Weighted weighted(3);
        scalide_binding *binding = nullptr;
        EXPECT_EQ(scalide_bind(context.handle, &plan.main, weighted.arrays.data(), 3, &binding), SCALIDE_INVALID_PROGRAM)
            << &damage - breaks << ' ' << scalide_message(context.handle);
        EXPECT_EQ(binding, nullptr);
    }
}

} // namespace
