// Counts and fails the runtime's allocations, and its threads: the linker redirects its calls here (--wrap).
#include "allocation.h"
#include "fixture.h"
#include "halide_hooks.h"
#include "scalide/checkpoints.h"
#include "scalide/metrics.h"
#include "support/folder.h"
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <pthread.h>
#include <string>

using namespace scalide::test;

namespace scalide::test {

std::atomic<int> allocations_live{0}, allocations_made{0}, allocation_to_fail{-1};

} // namespace scalide::test

extern "C" {
void *__real_aligned_alloc(size_t alignment, size_t bytes);
void __real_free(void *memory);

void *__wrap_aligned_alloc(size_t alignment, size_t bytes) {
    if (allocations_made++ == allocation_to_fail) return nullptr;
    ++allocations_live;
    return __real_aligned_alloc(alignment, bytes);
}

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*main)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*main)(void *), void *argument) {
    return allocations_made++ == allocation_to_fail ? EAGAIN : __real_pthread_create(thread, attributes, main, argument);
}

// Nothing but the runtime calls free in this program: the C++ library's own calls are in shared libraries.
void __wrap_free(void *memory) {
    if (memory) --allocations_live;
    __real_free(memory);
}
}

namespace {

/// What one does with a context and a library; the first status that is not OK.
scalide_status use(scalide_context *context, Sample &sample) {
    scalide_library *library = nullptr;
    scalide_binding *binding = nullptr;
    void *memory = nullptr;
    scalide_status status = scalide_load(context, SCALIDE_SAMPLE_LIBRARY, &library);
    const auto next = [&](const auto &call) {
        if (status == SCALIDE_OK) status = call();
    };
    const scalide_program *program = library ? scalide_library_program(context, library, "sample") : nullptr;
    next([&] { return scalide_allocate(context, 100, &memory); });
    next([&] { return scalide_shape_outputs(context, program, sample.arrays.data(), sample.arrays.size()); });
    next([&] { return scalide_bind(context, program, sample.arrays.data(), sample.arrays.size(), &binding); });
    next([&] { return scalide_run(binding); });
    next([&] { return scalide_set_arguments(binding, sample.arrays.data(), sample.arrays.size()); });
    next([&] { return scalide_run(binding); });
    scalide_binding_destroy(binding);
    scalide_release(context, memory);
    scalide_library_close(library);
    return status;
}

/// A context and its use, once more where a status was not OK: then nothing fails.
scalide_status whole_life(Sample &sample) {
    scalide_options options = {};
    options.struct_size = sizeof(options);
    options.threads = 2;
    options.scratch_bytes = 64;
    scalide_context *context = nullptr;
    scalide_status status = scalide_context_create(&options, &context);
    if (status != SCALIDE_OK) return status;
    status = use(context, sample);
    if (status != SCALIDE_OK) {
        EXPECT_STRNE(scalide_message(context), "");
        EXPECT_EQ(use(context, sample), SCALIDE_OK) << scalide_message(context);
    }
    scalide_context_destroy(context);
    return status;
}

/// Lets each allocation of `work` fail once, in turn: no leak, and SCALIDE_OK or a status that says so. Returns how many failures were
/// reported.
int fail_each_allocation(const std::function<scalide_status()> &work) {
    const int live_before = allocations_live;
    int reported = 0;
    for (int i = 0;; ++i) {
        allocations_made = 0;
        allocation_to_fail = i;
        const scalide_status status = work();
        allocation_to_fail = -1;
        EXPECT_EQ(allocations_live, live_before) << "leak after failing allocation " << i;
        if (allocations_made <= i) return reported; // there is no such allocation
        EXPECT_TRUE(status == SCALIDE_OK || status == SCALIDE_OUT_OF_MEMORY || status == SCALIDE_THREAD_FAILED) << status;
        reported += status != SCALIDE_OK;
    }
}

} // namespace

TEST(runtime, a_run_allocates_nothing) {
    Context context(2);
    Sample sample(512);
    scalide_binding *binding = nullptr;
    ASSERT_EQ(bind(context, sample_program(), sample, &binding), SCALIDE_OK);
    const int before = allocations_made;
    EXPECT_GT(before, 0);
    for (int i = 0; i < 20; ++i) ASSERT_EQ(scalide_run(binding), SCALIDE_OK);
    EXPECT_EQ(allocations_made, before);
    scalide_binding_destroy(binding);
}

TEST(runtime, scratch_grows_in_the_first_run_only) {
    Context context(2, 64);
    Sample sample(512);
    scalide_program program = *sample_program();
    scalide_binding *binding = nullptr;
    ASSERT_EQ(bind(context, &program, sample, &binding), SCALIDE_OK);
    const int before = allocations_made;
    ASSERT_EQ(scalide_run(binding), SCALIDE_OK);
    const int after = allocations_made;
    EXPECT_GT(after, before);
    for (int i = 0; i < 20; ++i) ASSERT_EQ(scalide_run(binding), SCALIDE_OK);
    EXPECT_EQ(allocations_made, after);
    scalide_binding_destroy(binding);
}

TEST(runtime, every_failing_allocation_is_a_status) {
    Sample sample(64);
    // context, workers, scratch of both, thread table, thread; library, memory, symbols, binding, plan of the arena, arena
    EXPECT_GE(fail_each_allocation([&] { return whole_life(sample); }), 11);
}

TEST(runtime, every_failing_allocation_of_safetensors_is_a_status) {
    const Folder folder;
    const std::string path = folder.file("state");
    Sample sample(6);
    const scalide_tensor tensors[] = {{"x", sample.arrays[0]}, {"w", sample.arrays[1]}};
    const scalide_safetensors_content content = {tensors, 2, nullptr, 0};
    // entries, header, two names; header, tables, data
    EXPECT_EQ(fail_each_allocation([&] {
                  char message[500] = "";
                  scalide_status status = scalide_safetensors_write(path.c_str(), &content, message, sizeof(message));
                  scalide_safetensors *file = nullptr;
                  if (status == SCALIDE_OK) status = scalide_safetensors_read(path.c_str(), &file, message, sizeof(message));
                  EXPECT_EQ(status == SCALIDE_OK, message[0] == 0);
                  scalide_safetensors_close(file);
                  return status;
              }),
              7);
}

TEST(runtime, every_failing_allocation_of_a_checkpoint_is_a_status) {
    const Folder folder;
    Sample sample(6);
    const scalide_tensor tensors[] = {{"x", sample.arrays[0]}, {"w", sample.arrays[1]}};
    const scalide_safetensors_content content = {tensors, 2, nullptr, 0};
    for (const uint64_t shard_bytes : {0, 1}) {
        const std::string path = folder.file(std::to_string(shard_bytes));
        const scalide_checkpoint_options options = {sizeof(options), nullptr, 2, 0, 1, 0, shard_bytes};
        EXPECT_GE(fail_each_allocation([&] {
                      const int planned = allocation_to_fail;
                      allocation_to_fail = -1;
                      std::filesystem::remove_all(path);
                      EXPECT_EQ(scalide_checkpoint_save(path.c_str(), 1, &content, &options, nullptr, 0), SCALIDE_OK);
                      allocation_to_fail = planned;
                      allocations_made = 0;
                      char message[500] = "";
                      scalide_status status = scalide_checkpoint_save(path.c_str(), 1, &content, &options, message, sizeof(message));
                      scalide_safetensors *file = nullptr;
                      if (status == SCALIDE_OK)
                          status = scalide_checkpoint_read(path.c_str(), 1, &options, &file, nullptr, message, sizeof(message));
                      EXPECT_EQ(status == SCALIDE_OK, message[0] == 0) << message;
                      scalide_safetensors_close(file);
                      return status;
                  }),
                  12);
    }
}

TEST(runtime, every_failing_allocation_of_metrics_is_a_status) {
    const Folder folder;
    const std::string path = folder.file("runs");
    // the object with its queue, the thread
    EXPECT_EQ(fail_each_allocation([&] {
                  char message[500] = "";
                  scalide_metrics *metrics = nullptr;
                  const scalide_status status = scalide_metrics_open(path.c_str(), nullptr, &metrics, message, sizeof(message));
                  EXPECT_EQ(status == SCALIDE_OK, message[0] == 0);
                  if (metrics) EXPECT_EQ(scalide_metrics_write(metrics, 0, nullptr, 0, nullptr, 0), SCALIDE_OK);
                  EXPECT_EQ(scalide_metrics_close(metrics, nullptr, 0), SCALIDE_OK);
                  return status;
              }),
              2);
}

TEST(runtime, hooks_serve_other_kernels) {
    const int live_before = allocations_live;
    auto *memory = static_cast<char *>(halide_malloc(nullptr, 100));
    ASSERT_NE(memory, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 64, 0u);
    memory[-8] = memory[107] = 1;
    halide_free(nullptr, memory);
    halide_free(nullptr, nullptr);
    EXPECT_EQ(allocations_live, live_before);
    EXPECT_EQ(halide_malloc(nullptr, SIZE_MAX), nullptr);
    uint8_t calls = 0;
    const auto task = [](void *, int index, uint8_t *closure) { return *closure = static_cast<uint8_t>(*closure + index), 0; };
    EXPECT_EQ(halide_do_par_for(nullptr, task, 1, 4, &calls), 0);
    EXPECT_EQ(calls, 1 + 2 + 3 + 4);
    uint64_t foreign_context[2] = {};
    EXPECT_EQ(halide_do_par_for(foreign_context, task, 0, 1, &calls), 0);
    halide_error(foreign_context, "ignored");
}
