// Memory, threads and the log of the application.
#include "allocation.h"
#include "fixture.h"
#include <cstdlib>
#include <string>
#include <thread>

using namespace scalide::test;

namespace {

/// An application that counts what a context asks of it.
struct Application {
    std::atomic<int> live{0}, made{0}, loops{0};
    int fails_at = -1;
    std::vector<std::string> lines;

    static void *allocate(void *user, size_t bytes, size_t alignment) {
        auto &self = *static_cast<Application *>(user);
        if (self.made++ == self.fails_at) return nullptr;
        ++self.live;
        void *memory = nullptr;
        EXPECT_EQ(alignment, 64u);
        EXPECT_EQ(posix_memalign(&memory, alignment, bytes), 0);
        return memory;
    }
    static void release(void *user, void *memory) {
        --static_cast<Application *>(user)->live;
        std::free(memory);
        ++allocations_live; // free is counted, posix_memalign is not
    }
    static void parallel_for(void *user, int32_t count, void (*task)(void *, int32_t), void *data) {
        ++static_cast<Application *>(user)->loops;
        std::vector<std::thread> threads;
        for (int32_t i = count - 1; i > 0; --i) threads.emplace_back(task, data, i);
        task(data, 0);
        for (std::thread &thread : threads) thread.join();
    }
    static void serial_for(void *user, int32_t count, void (*task)(void *, int32_t), void *data) {
        ++static_cast<Application *>(user)->loops;
        for (int32_t i = count - 1; i >= 0; --i) task(data, i);
    }
    static void log(void *user, const char *message) { static_cast<Application *>(user)->lines.emplace_back(message); }

    scalide_options options(int32_t threads) {
        scalide_options options = {};
        options.struct_size = sizeof(options);
        options.threads = threads;
        options.allocator = {allocate, release, this};
        options.log = log;
        options.log_user = this;
        return options;
    }
};

scalide_status run_once(const scalide_options &options, Sample &sample) {
    scalide_context *context = nullptr;
    scalide_binding *binding = nullptr;
    void *memory = nullptr;
    scalide_status status = scalide_context_create(&options, &context);
    if (status == SCALIDE_OK) status = scalide_allocate(context, 100, &memory);
    if (status == SCALIDE_OK) status = scalide_shape_outputs(context, sample_program(), sample.arrays.data(), 4);
    if (status == SCALIDE_OK) status = scalide_bind(context, sample_program(), sample.arrays.data(), 4, &binding);
    if (status == SCALIDE_OK) status = scalide_run(binding);
    scalide_release(context, memory);
    scalide_binding_destroy(binding);
    scalide_context_destroy(context);
    return status;
}

TEST(runtime, an_application_gives_all_memory_of_a_context) {
    Application application;
    Sample sample(64);
    const int before = allocations_made;
    EXPECT_EQ(run_once(application.options(1), sample), SCALIDE_OK);
    EXPECT_EQ(allocations_made, before);
    EXPECT_EQ(application.live, 0);
    const int made = application.made;
    EXPECT_GT(made, 5);
    for (int i = 0; i < made; ++i) { // whatever fails, nothing leaks
        Application failing;
        failing.fails_at = i;
        Sample other(64);
        const scalide_status status = run_once(failing.options(1), other);
        EXPECT_TRUE(status == SCALIDE_OUT_OF_MEMORY || status == SCALIDE_THREAD_FAILED) << i;
        EXPECT_EQ(failing.live, 0) << i;
    }
}

TEST(runtime, an_allocator_has_both_functions) {
    Application application;
    scalide_options options = application.options(1);
    char message[200] = "";
    options.allocator.release = nullptr;
    options.message = message;
    options.message_size = sizeof(message);
    scalide_context *context = nullptr;
    EXPECT_EQ(scalide_context_create(&options, &context), SCALIDE_INVALID_ARGUMENT);
    EXPECT_STREQ(message, "allocator needs both functions, allocate and release, got one of them.");
}

TEST(runtime, loops_on_threads_of_the_application_give_the_same_bits) {
    Sample own(512);
    const Context context(4);
    scalide_binding *binding = nullptr;
    ASSERT_EQ(scalide_bind(context.handle, sample_program(), own.arrays.data(), 4, &binding), SCALIDE_OK);
    EXPECT_EQ(scalide_run(binding), SCALIDE_OK);
    scalide_binding_destroy(binding);
    for (const auto run : {Application::parallel_for, Application::serial_for}) {
        Application application;
        scalide_options options = application.options(4);
        options.parallel_for = {run, &application};
        Sample sample(512);
        EXPECT_EQ(run_once(options, sample), SCALIDE_OK);
        EXPECT_EQ(sample.y, own.y);
        EXPECT_EQ(sample.mean, own.mean);
        EXPECT_EQ(application.loops, 1);
        EXPECT_EQ(application.live, 0);
    }
}

TEST(runtime, the_log_gets_bindings_and_failures) {
    Application application;
    Sample sample(6);
    EXPECT_EQ(run_once(application.options(1), sample), SCALIDE_OK);
    ASSERT_EQ(application.lines.size(), 1u);
    EXPECT_EQ(application.lines[0].substr(0, 33), "sample: bound with b = 6: 3 steps");
    sample.arrays[0].dtype = SCALIDE_F16;
    scalide_options options = application.options(1);
    scalide_context *context = nullptr;
    scalide_binding *binding = nullptr;
    scalide_library *library = nullptr;
    ASSERT_EQ(scalide_context_create(&options, &context), SCALIDE_OK);
    EXPECT_EQ(scalide_bind(context, sample_program(), sample.arrays.data(), 4, &binding), SCALIDE_INVALID_ARGUMENT);
    EXPECT_EQ(scalide_load(context, "/nowhere", &library), SCALIDE_FILE_ERROR);
    ASSERT_EQ(application.lines.size(), 3u);
    EXPECT_EQ(application.lines[1].substr(0, 40), "sample.x: dtype must be f32, got f16. Co");
    EXPECT_EQ(application.lines[2].substr(0, 9), "/nowhere:");
    scalide_context_destroy(context);
}

} // namespace
