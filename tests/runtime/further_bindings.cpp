// scalide_bind_like and scalide_set_arena: one program in several threads. Also built with ThreadSanitizer (tests/threads).
#include "constants_program.h"
#include <atomic>
#include <memory>
#include <string>
#include <thread>

using namespace scalide::test;

namespace {

/// Runs the binding and compares a result.
bool run_is_right(scalide_binding *binding, Sample &sample) {
    sample.w_scale = 1;
    sample.w = {1, 2, 3, 4};
    const size_t last = sample.y.size() - 1;
    const float expected = sample.expected_y(last);
    sample.y[last] = -1;
    return scalide_run(binding) == SCALIDE_OK && sample.y[last] == expected;
}

/// Memory of an application that counts the bytes in use.
struct Counted {
    std::atomic<size_t> bytes{0};

    scalide_allocator allocator() { return {allocate, release, this}; }
    static void *allocate(void *user, size_t bytes, size_t alignment) {
        void *memory = nullptr;
        EXPECT_EQ(posix_memalign(&memory, alignment, bytes + alignment), 0);
        *static_cast<size_t *>(memory) = bytes;
        static_cast<Counted *>(user)->bytes += bytes;
        return static_cast<char *>(memory) + alignment;
    }
    static void release(void *user, void *memory) {
        char *block = static_cast<char *>(memory) - 64;
        static_cast<Counted *>(user)->bytes -= *reinterpret_cast<size_t *>(block);
        std::free(block);
    }
};

} // namespace

TEST(further_bindings, are_independent_of_the_first_one) {
    Sample first(6), second(6);
    Bound further;
    Context own(1);
    {
        Context context(2);
        Bound binding;
        ASSERT_EQ(bind(context, sample_program(), first, &binding.handle), SCALIDE_OK);
        ASSERT_EQ(scalide_bind_like(own.handle, binding.handle, second.arrays.data(), 4, &further.handle), SCALIDE_OK)
            << scalide_message(own.handle);
        EXPECT_TRUE(run_is_right(binding.handle, first));
    }
    EXPECT_EQ(scalide_symbol_value(further.handle, "b"), 6);
    EXPECT_EQ(scalide_step_count(further.handle), 3u);
    EXPECT_TRUE(run_is_right(further.handle, second));
    double total = 0;
    EXPECT_EQ(scalide_read_scalar(further.handle, "total", &total), SCALIDE_OK);
    EXPECT_GT(total, 0);
}

TEST(further_bindings, have_the_shapes_of_the_first_one) {
    Context context(1);
    Sample first(6), other(8);
    Bound binding;
    scalide_binding *further = binding.handle;
    ASSERT_EQ(bind(context, sample_program(), first, &binding.handle), SCALIDE_OK);
    EXPECT_EQ(scalide_bind_like(context.handle, binding.handle, other.arrays.data(), 4, &further), SCALIDE_INVALID_ARGUMENT);
    EXPECT_STREQ(scalide_message(context.handle), "sample.x: extent 0 must be 6, got 8. Pass an array of shape [b, 4] with b = 6.");
    EXPECT_EQ(further, nullptr);
    EXPECT_EQ(scalide_bind_like(context.handle, binding.handle, first.arrays.data(), 3, &further), SCALIDE_INVALID_ARGUMENT);
    EXPECT_STREQ(scalide_message(context.handle), "sample: the number of arrays must be 4, got 3. Pass in this order: x, w, y, mean.");
    first.arrays[2].data = first.x.data();
    EXPECT_EQ(scalide_bind_like(context.handle, binding.handle, first.arrays.data(), 4, &further), SCALIDE_INVALID_ARGUMENT);
    EXPECT_STREQ(scalide_message(context.handle), "sample.y: a run writes this memory, but it overlaps with x. Pass separate memory.");
}

TEST(further_bindings, own_only_argument_lists_and_an_arena) {
    Counted counted;
    scalide_options options = {};
    options.struct_size = sizeof(options);
    options.threads = 1;
    options.allocator = counted.allocator();
    scalide_context *context = nullptr;
    ASSERT_EQ(scalide_context_create(&options, &context), SCALIDE_OK);
    Sample sample(6), other(6);
    size_t before = counted.bytes;
    scalide_binding *binding = nullptr, *further = nullptr;
    ASSERT_EQ(scalide_bind(context, sample_program(), sample.arrays.data(), 4, &binding), SCALIDE_OK);
    const size_t of_first = counted.bytes - before;
    before = counted.bytes;
    ASSERT_EQ(scalide_bind_like(context, binding, other.arrays.data(), 4, &further), SCALIDE_OK);
    EXPECT_LT(counted.bytes - before, of_first);
    const size_t with_arena = counted.bytes;
    alignas(64) static char arena[4096];
    ASSERT_LE(scalide_arena_bytes(further), sizeof(arena));
    ASSERT_EQ(scalide_set_arena(further, arena, sizeof(arena)), SCALIDE_OK) << scalide_message(context);
    EXPECT_EQ(counted.bytes, with_arena - scalide_arena_bytes(further));
    EXPECT_TRUE(run_is_right(further, other));
    ASSERT_EQ(scalide_set_arena(further, nullptr, 0), SCALIDE_OK);
    EXPECT_EQ(counted.bytes, with_arena);
    EXPECT_TRUE(run_is_right(further, other));
    scalide_binding_destroy(binding);
    scalide_binding_destroy(further);
    scalide_context_destroy(context);
    EXPECT_EQ(counted.bytes, 0u);
}

TEST(further_bindings, of_8_threads_share_constants) {
    const WeightedPlan plan;
    Context context(1), preparing(1);
    Weighted first(1), doubled(2);
    scalide_constants *sets[] = {first.prepare(preparing, plan), doubled.prepare(preparing, plan)};
    Bound binding;
    ASSERT_EQ(scalide_bind_constants(context.handle, &plan.main, first.arrays.data(), 3, sets[0], &binding.handle), SCALIDE_OK);
    std::atomic<int> wrong{0}, running{8};
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i)
        threads.emplace_back([&] {
            Context own(1);
            for (int k = 0; k < 20; ++k) {
                Weighted weighted(0);
                weighted.arrays[1] = {};
                Bound further;
                wrong += scalide_bind_like(own.handle, binding.handle, weighted.arrays.data(), 3, &further.handle) != SCALIDE_OK;
                for (int run = 0; run < 20; ++run) {
                    wrong += scalide_run(further.handle) != SCALIDE_OK;
                    wrong += weighted.y[4] != 8 && weighted.y[4] != 16;
                    wrong += scalide_set_constants(further.handle, sets[run % 2]) != SCALIDE_OK;
                }
            }
            --running;
        });
    std::thread replacing([&] { // during the runs of the first binding, and while others are made from it
        for (int i = 0; running > 0; ++i) wrong += scalide_set_constants(binding.handle, sets[i % 2]) != SCALIDE_OK;
    });
    while (running > 0) {
        wrong += scalide_run(binding.handle) != SCALIDE_OK;
        wrong += first.y[4] != 8 && first.y[4] != 16;
    }
    for (std::thread &thread : threads) thread.join();
    replacing.join();
    EXPECT_EQ(wrong, 0);
    for (scalide_constants *constants : sets) scalide_constants_destroy(constants);
}

TEST(further_bindings, an_arena_of_the_caller_serves_several_bindings) {
    Context context(2);
    Sample first(64), second(64);
    Bound binding, further;
    ASSERT_EQ(bind(context, sample_program(), first, &binding.handle), SCALIDE_OK);
    ASSERT_EQ(scalide_bind_like(context.handle, binding.handle, second.arrays.data(), 4, &further.handle), SCALIDE_OK);
    alignas(64) static char arena[4096];
    for (scalide_binding *each : {binding.handle, further.handle})
        ASSERT_EQ(scalide_set_arena(each, arena, sizeof(arena)), SCALIDE_OK) << scalide_message(context.handle);
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(run_is_right(binding.handle, first) && run_is_right(further.handle, second));
    ASSERT_EQ(scalide_set_arena(binding.handle, nullptr, 0), SCALIDE_OK);
    EXPECT_TRUE(run_is_right(binding.handle, first) && run_is_right(further.handle, second));
}

TEST(further_bindings, wrong_arenas_are_refused) {
    Context context(1);
    Sample sample(64);
    Bound binding;
    ASSERT_EQ(bind(context, sample_program(), sample, &binding.handle), SCALIDE_OK);
    const size_t bytes = scalide_arena_bytes(binding.handle);
    const std::string needed = std::to_string(bytes);
    alignas(64) static char arena[4096];
    EXPECT_EQ(scalide_set_arena(binding.handle, arena, bytes - 1), SCALIDE_INVALID_ARGUMENT);
    EXPECT_EQ(scalide_message(context.handle),
              "sample: the arena must have at least " + needed + " bytes, got " + std::to_string(bytes - 1) + ". Ask scalide_arena_bytes.");
    EXPECT_EQ(scalide_set_arena(binding.handle, arena + 16, bytes), SCALIDE_INVALID_ARGUMENT);
    EXPECT_STREQ(scalide_message(context.handle), "sample: the arena must be aligned to 64 bytes; this address is 16 bytes past a 64-byte "
                                                  "boundary. Use scalide_allocate or aligned_alloc(64, size).");
    EXPECT_EQ(scalide_set_arena(binding.handle, sample.w.data(), bytes), SCALIDE_INVALID_ARGUMENT);
    EXPECT_STREQ(scalide_message(context.handle),
                 "sample.w: the memory overlaps with the arena of scalide_set_arena. Pass separate memory.");
    EXPECT_TRUE(run_is_right(binding.handle, sample)) << "with its own arena";
    ASSERT_EQ(scalide_set_arena(binding.handle, arena, bytes), SCALIDE_OK);
    scalide_array y = sample.arrays[2];
    y.data = arena;
    EXPECT_EQ(scalide_set_argument(binding.handle, 2, &y), SCALIDE_INVALID_ARGUMENT);
    EXPECT_STREQ(scalide_message(context.handle),
                 "sample.y: the memory overlaps with the arena of scalide_set_arena. Pass separate memory.");
    EXPECT_TRUE(run_is_right(binding.handle, sample));
}
