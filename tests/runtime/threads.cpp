#include "base/scratch.h"
#include "fixture.h"
#include "halide_hooks.h"
#include <atomic>
#include <cstring>
#include <random>
#include <thread>

using namespace scalide::test;

namespace {

/// Runs `kernel` as the first step of the sample program.
scalide_status run_kernel(Context &context, scalide_kernel kernel, int runs) {
    Sample sample(6);
    scalide_program program = *sample_program();
    const scalide_step step = {"test", kernel, nullptr, 0, nullptr};
    program.steps = &step;
    program.step_count = 1;
    scalide_buffer buffers[7];
    std::copy(program.buffers, program.buffers + 7, buffers);
    buffers[5].storage = SCALIDE_STORAGE_SCALAR; // no arena
    buffers[5].index = buffers[5].rank = 0;
    buffers[5].first_step = -1;
    program.buffers = buffers;
    scalide_binding *binding = nullptr;
    EXPECT_EQ(bind(context, &program, sample, &binding), SCALIDE_OK) << scalide_message(context.handle);
    scalide_status status = SCALIDE_OK;
    for (int i = 0; i < runs && status == SCALIDE_OK; ++i) status = scalide_run(binding);
    scalide_binding_destroy(binding);
    return status;
}

struct Counts {
    std::atomic<int> calls[1000];
};

} // namespace

TEST(runtime, parallel_loop_does_each_index_once) {
    Context context(4);
    const auto kernel = [](void **arguments) {
        static Counts counts;
        for (auto &count : counts.calls) count = 0;
        const auto task = [](void *, int index, uint8_t *closure) { return ++reinterpret_cast<Counts *>(closure)->calls[index - 17], 0; };
        for (int size : {0, 1, 2, 3, 31, 1000}) {
            for (auto &count : counts.calls) count = 0;
            if (halide_do_par_for(*static_cast<void **>(arguments[0]), task, 17, size, reinterpret_cast<uint8_t *>(&counts)) != 0) return 1;
            for (int i = 0; i < 1000; ++i) {
                if (counts.calls[i] != (i < size)) return 2;
            }
        }
        return 0;
    };
    EXPECT_EQ(run_kernel(context, kernel, 200), SCALIDE_OK) << scalide_message(context.handle);
}

TEST(runtime, inner_loops_do_each_index_once) {
    Context context(4);
    const auto kernel = [](void **arguments) {
        static Counts counts;
        for (auto &count : counts.calls) count = 0;
        const auto outer = [](void *user_context, int row, uint8_t *) {
            const auto inner = [](void *innermost, int index, uint8_t *) {
                const auto task = [](void *, int i, uint8_t *) { return ++counts.calls[i], 0; };
                return halide_do_par_for(innermost, task, 2 * index, 2, nullptr);
            };
            return halide_do_par_for(user_context, inner, 10 * row, 10, nullptr);
        };
        const int error = halide_do_par_for(*static_cast<void **>(arguments[0]), outer, 0, 50, nullptr);
        for (const auto &count : counts.calls) {
            if (count != 1) return 1;
        }
        return error;
    };
    EXPECT_EQ(run_kernel(context, kernel, 200), SCALIDE_OK) << scalide_message(context.handle);
}

TEST(runtime, idle_threads_help_with_inner_loops) {
    Context context(2);
    const auto kernel = [](void **arguments) {
        const auto outer = [](void *user_context, int row, uint8_t *) {
            if (row == 0) return 0;
            // Both indices wait for each other: without the thread that did row 0 this never ends.
            static std::atomic<int> arrived;
            arrived = 0;
            const auto inner = [](void *, int, uint8_t *) {
                ++arrived;
                while (arrived < 2) std::this_thread::yield();
                return 0;
            };
            return halide_do_par_for(user_context, inner, 0, 2, nullptr);
        };
        return halide_do_par_for(*static_cast<void **>(arguments[0]), outer, 0, 2, nullptr);
    };
    EXPECT_EQ(run_kernel(context, kernel, 50), SCALIDE_OK);
}

TEST(runtime, inner_loop_returns_an_error_of_a_task) {
    Context context(3);
    const auto kernel = [](void **arguments) {
        const auto outer = [](void *user_context, int, uint8_t *) {
            const auto inner = [](void *, int index, uint8_t *) { return index == 7 ? 5 : 0; };
            return halide_do_par_for(user_context, inner, 0, 10, nullptr) == 5 ? 0 : 1;
        };
        return halide_do_par_for(*static_cast<void **>(arguments[0]), outer, 0, 20, nullptr);
    };
    EXPECT_EQ(run_kernel(context, kernel, 100), SCALIDE_OK) << scalide_message(context.handle);
}

TEST(runtime, parallel_loop_returns_an_error_of_a_task) {
    Context context(3);
    const auto kernel = [](void **arguments) {
        const auto task = [](void *, int index, uint8_t *) { return index == 70 ? 5 : 0; };
        return halide_do_par_for(*static_cast<void **>(arguments[0]), task, 0, 100, nullptr) == 5 ? 0 : 1;
    };
    EXPECT_EQ(run_kernel(context, kernel, 100), SCALIDE_OK) << scalide_message(context.handle);
}

TEST(runtime, contexts_are_independent) {
    std::vector<std::thread> threads;
    std::atomic<int> good{0};
    for (int i = 0; i < 6; ++i) {
        threads.emplace_back([&good, i] {
            Context context(1 + i % 3);
            Sample sample(100);
            sample.w_scale = 1;
            scalide_binding *binding = nullptr;
            if (bind(context, sample_program(), sample, &binding) != SCALIDE_OK) return;
            for (int run = 0; run < 100; ++run) {
                sample.w = {1, 2, 3, static_cast<float>(i)};
                sample.w_scale = 1;
                const float expected = sample.expected_y(99);
                if (scalide_run(binding) != SCALIDE_OK || sample.y[99] != expected) break;
                good += run == 99;
            }
            scalide_binding_destroy(binding);
        });
    }
    for (std::thread &thread : threads) thread.join();
    EXPECT_EQ(good, 6);
}

TEST(runtime, sleeping_threads_wake_up) {
    Context context(2);
    const auto kernel = [](void **arguments) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        // Both indices wait for each other: without a second thread this never ends.
        static std::atomic<int> arrived;
        arrived = 0;
        const auto task = [](void *, int, uint8_t *) {
            ++arrived;
            while (arrived < 2) std::this_thread::yield();
            return 0;
        };
        return halide_do_par_for(*static_cast<void **>(arguments[0]), task, 0, 2, nullptr);
    };
    EXPECT_EQ(run_kernel(context, kernel, 50), SCALIDE_OK);
}

TEST(runtime, options_of_older_callers_mean_defaults) {
    scalide_context *context = nullptr;
    ASSERT_EQ(scalide_context_create(nullptr, &context), SCALIDE_OK);
    EXPECT_GE(scalide_thread_count(context), 1);
    scalide_context_destroy(context);
    scalide_options options = {};
    options.struct_size = offsetof(scalide_options, cache_folder);
    options.threads = 3;
    options.cache_folder = "/nowhere";
    options.allocator.allocate = [](void *, size_t, size_t) -> void * { return nullptr; };
    ASSERT_EQ(scalide_context_create(&options, &context), SCALIDE_OK);
    EXPECT_EQ(scalide_thread_count(context), 3);
    scalide_context_destroy(context);
    options.threads = -1;
    EXPECT_EQ(scalide_context_create(&options, &context), SCALIDE_INVALID_ARGUMENT);
    EXPECT_EQ(context, nullptr);
}

TEST(runtime, scratch_memory_that_no_machine_has_is_refused) {
    char message[200] = "";
    scalide_options options = {};
    options.struct_size = sizeof(options);
    options.threads = 2;
    options.message = message;
    options.message_size = sizeof(message);
    scalide_context *context = nullptr;
    options.scratch_bytes = UINT64_MAX;
    EXPECT_EQ(scalide_context_create(&options, &context), SCALIDE_INVALID_ARGUMENT);
    EXPECT_STREQ(message, "scratch_bytes must be at most 4611686018427387904, got 18446744073709551615. Pass 0 for 1 MiB per thread.");
    options.scratch_bytes = uint64_t(1) << 62;
    EXPECT_EQ(scalide_context_create(&options, &context), SCALIDE_OUT_OF_MEMORY);
    EXPECT_EQ(context, nullptr);
    scalide::Scratch scratch;
    EXPECT_FALSE(scratch.reserve(UINT64_MAX));
    EXPECT_FALSE(scratch.reserve(UINT64_MAX - 63));
    EXPECT_EQ(scratch.take(UINT64_MAX / 2), nullptr);
    scratch.destroy();
}

TEST(runtime, scratch_blocks_are_disjoint_in_any_order) {
    const auto seed = std::random_device()();
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    scalide::Scratch scratch;
    ASSERT_TRUE(scratch.reserve(4096));
    struct Block {
        unsigned char *memory;
        size_t bytes;
        unsigned char fill;
    };
    std::vector<Block> blocks;
    for (int i = 0; i < 5000; ++i) {
        if (blocks.size() < 20 && random() % 2) {
            const size_t bytes = random() % 3000;
            auto *memory = static_cast<unsigned char *>(scratch.take(bytes));
            ASSERT_NE(memory, nullptr);
            ASSERT_EQ(reinterpret_cast<uintptr_t>(memory) % 64, 0u);
            blocks.push_back({memory, bytes, static_cast<unsigned char>(i)});
            std::memset(memory, blocks.back().fill, bytes);
        } else if (!blocks.empty()) {
            const size_t index = random() % blocks.size();
            const Block block = blocks[index];
            for (size_t k = 0; k < block.bytes; ++k) ASSERT_EQ(block.memory[k], block.fill);
            scratch.give_back(block.memory);
            blocks.erase(blocks.begin() + static_cast<std::ptrdiff_t>(index));
        }
    }
    scratch.rewind(nullptr);
    scratch.destroy();
}
