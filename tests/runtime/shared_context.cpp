// One context in several threads, and the order in which handles are destroyed. Also built with ThreadSanitizer (tests/threads).
#include "constants_program.h"
#include <atomic>
#include <functional>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace scalide::test;

namespace {

constexpr char busy[] = "another thread uses the context";

/// A bound sample program.
struct BoundSample : Bound {
    Sample sample;
    explicit BoundSample(Context &context, int64_t b = 6) : sample(b) {
        EXPECT_EQ(bind(context, sample_program(), sample, &handle), SCALIDE_OK) << scalide_message(context.handle);
    }
};

/// The calls of a second thread, all with right arguments.
std::vector<scalide_status> statuses_of_all_functions(Context &context, BoundSample &bound) {
    scalide_binding *binding = nullptr;
    scalide_constants *constants = nullptr;
    scalide_library *library = nullptr;
    scalide_step_info info;
    scalide_non_finite first;
    std::vector<scalide_step_profile> profile(scalide_step_count(bound.handle));
    double value = 0;
    const int64_t b = 6;
    Sample sample(b);
    scalide_array *arrays = sample.arrays.data();
    const scalide_program *program = sample_program();
    return {
        scalide_bind(context.handle, program, arrays, 4, &binding),
        scalide_check_signature(context.handle, program, 0),
        scalide_prepare(context.handle, program, arrays, 4, &constants),
        scalide_shape_arguments(context.handle, program, &b, 1, arrays, 4),
        scalide_shape_outputs(context.handle, program, arrays, 4),
        scalide_initial_state(context.handle, program, arrays, 4),
        scalide_load(context.handle, SCALIDE_SAMPLE_LIBRARY, &library),
        scalide_set_argument(bound.handle, 0, arrays),
        scalide_set_arguments(bound.handle, arrays, 4),
        scalide_set_arena(bound.handle, nullptr, 0),
        scalide_bind_like(context.handle, bound.handle, arrays, 4, &binding),
        scalide_run(bound.handle),
        scalide_run_traced(bound.handle, nullptr, nullptr),
        scalide_run_checked(bound.handle, &first),
        scalide_profile(bound.handle, 1, profile.data(), profile.size()),
        scalide_capture(bound.handle),
        scalide_describe_step(bound.handle, 0, &info),
        scalide_read_scalar(bound.handle, "total", &value),
    };
}

template<typename Work>
void in_another_thread(const Work &work) {
    std::thread(work).join();
}

} // namespace

TEST(shared_context, a_second_thread_gets_an_error_and_changes_nothing) {
    Context context(2);
    BoundSample bound(context);
    scalide_library *none = nullptr;
    EXPECT_EQ(scalide_load(context.handle, "/nowhere", &none), SCALIDE_FILE_ERROR);
    const std::string before = scalide_message(context.handle);
    int calls = 0;
    std::function<void()> look = [&] {
        ++calls;
        in_another_thread([&] {
            for (const scalide_status status : statuses_of_all_functions(context, bound)) EXPECT_EQ(status, SCALIDE_BUSY);
            EXPECT_EQ(scalide_library_program(context.handle, none, "sample"), nullptr);
            EXPECT_STREQ(scalide_message(context.handle), busy);
        });
        EXPECT_EQ(scalide_message(context.handle), before);
        double value;
        EXPECT_EQ(scalide_read_scalar(bound.handle, "total", &value), SCALIDE_OK) << "of the thread that runs";
    };
    const auto trace = [](void *user, const scalide_traced *, const scalide_array *) { (*static_cast<std::function<void()> *>(user))(); };
    EXPECT_EQ(scalide_run_traced(bound.handle, trace, &look), SCALIDE_OK);
    EXPECT_GT(calls, 3);
    EXPECT_EQ(scalide_message(context.handle), before);
    EXPECT_STREQ(scalide_status_string(SCALIDE_BUSY), busy);
    in_another_thread([&] { EXPECT_EQ(scalide_run(bound.handle), SCALIDE_OK); });
}

TEST(shared_context, memory_on_the_cpu_may_be_used_during_a_run) {
    Context context(2);
    BoundSample bound(context);
    std::function<void()> allocate = [&] {
        in_another_thread([&] {
            void *memory = nullptr;
            const float one = 1;
            float back = 0;
            EXPECT_EQ(scalide_allocate(context.handle, 4, &memory), SCALIDE_OK);
            EXPECT_EQ(scalide_copy_in(context.handle, memory, &one, 4), SCALIDE_OK);
            EXPECT_EQ(scalide_copy_out(context.handle, &back, memory, 4), SCALIDE_OK);
            EXPECT_EQ(scalide_synchronise(context.handle), SCALIDE_OK);
            EXPECT_EQ(back, 1);
            scalide_release(context.handle, memory);
        });
    };
    const auto trace = [](void *user, const scalide_traced *, const scalide_array *) { (*static_cast<std::function<void()> *>(user))(); };
    EXPECT_EQ(scalide_run_traced(bound.handle, trace, &allocate), SCALIDE_OK);
}

TEST(shared_context, threads_at_once_get_errors_instead_of_races) {
    Context context(2);
    std::atomic<int> good{0}, refused{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i)
        threads.emplace_back([&] {
            for (int k = 0; k < 100; ++k) {
                Sample sample(64);
                sample.w_scale = 1;
                const float expected = sample.expected_y(63);
                scalide_binding *binding = nullptr;
                scalide_status status = bind(context, sample_program(), sample, &binding);
                if (status == SCALIDE_OK) status = scalide_run(binding);
                EXPECT_TRUE(status != SCALIDE_OK || sample.y[63] == expected);
                EXPECT_TRUE(status == SCALIDE_OK || status == SCALIDE_BUSY) << status;
                ++(status == SCALIDE_OK ? good : refused);
                scalide_binding_destroy(binding);
            }
        });
    for (std::thread &thread : threads) thread.join();
    EXPECT_EQ(good + refused, 800);
    EXPECT_GT(good, 0);
}

TEST(shared_context, bindings_keep_their_context_alive) {
    scalide_options options = {};
    options.struct_size = sizeof(options);
    options.threads = 3;
    scalide_context *context = nullptr;
    ASSERT_EQ(scalide_context_create(&options, &context), SCALIDE_OK);
    Sample first(64), second(64);
    scalide_binding *bindings[2] = {};
    ASSERT_EQ(scalide_bind(context, sample_program(), first.arrays.data(), 4, &bindings[0]), SCALIDE_OK);
    ASSERT_EQ(scalide_bind(context, sample_program(), second.arrays.data(), 4, &bindings[1]), SCALIDE_OK);
    scalide_context_destroy(context);
    const float expected = first.expected_y(63);
    EXPECT_EQ(scalide_run(bindings[0]), SCALIDE_OK);
    scalide_binding_destroy(bindings[0]);
    EXPECT_EQ(scalide_run(bindings[1]), SCALIDE_OK);
    EXPECT_EQ(second.y[63], expected);
    scalide_binding_destroy(bindings[1]);
}

TEST(shared_context, constants_and_their_bindings_outlive_the_context) {
    const WeightedPlan plan;
    Weighted weighted(3);
    scalide_binding *binding = nullptr;
    scalide_constants *constants = nullptr;
    {
        Context context;
        constants = weighted.prepare(context, plan);
        ASSERT_EQ(scalide_bind_constants(context.handle, &plan.main, weighted.arrays.data(), 3, constants, &binding), SCALIDE_OK);
    }
    EXPECT_EQ(scalide_run(binding), SCALIDE_OK);
    EXPECT_EQ(weighted.y[0], 24);
    scalide_binding_destroy(binding);
    scalide_constants_destroy(constants);
}

TEST(shared_context, a_forked_process_has_one_thread) {
    Context context(3);
    EXPECT_EQ(scalide_thread_count(context.handle), 3);
    const pid_t child = fork();
    if (child == 0) _exit(scalide_thread_count(context.handle));
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 1);
}
