// What kernels ask for during a run: parallel loops and scratch memory.
#include "context.h"
#include <algorithm>

namespace scalide {

namespace {

Worker &worker_of(void *user_context) { return *static_cast<Worker *>(static_cast<KernelContext *>(user_context)); }

int run_serially(void *user_context, HalideTask task, int min, int size, uint8_t *closure) {
    int error = 0;
    for (int i = 0; i < size && error == 0; ++i) error = task(user_context, min + i, closure);
    return error;
}

void run_span(Region &region, Worker &worker, Worker &owner) {
    while (region.error.load(std::memory_order_relaxed) == 0) {
        const int64_t begin = owner.next.fetch_add(region.chunk, std::memory_order_relaxed);
        if (begin >= owner.end) return;
        const auto length = static_cast<int>(std::min<int64_t>(region.chunk, owner.end - begin));
        const int error = run_serially(static_cast<KernelContext *>(&worker), region.task, static_cast<int>(begin), length, region.closure);
        if (error != 0) region.error.store(error, std::memory_order_relaxed);
    }
}

void split(scalide_context *context, int min, int size) {
    const int64_t threads = context->thread_count;
    for (int64_t i = 0; i < threads; ++i) {
        context->workers[i].next.store(min + i * size / threads, std::memory_order_relaxed);
        context->workers[i].end = min + (i + 1) * size / threads;
    }
}

int parallel_for(void *user_context, HalideTask task, int min, int size, uint8_t *closure) {
    Worker &worker = worker_of(user_context);
    scalide_context *context = worker.context;
    if (worker.in_region || size <= 1 || context->thread_count == 1) return run_serially(user_context, task, min, size, closure);
    Region &region = context->region;
    // Some pieces per thread even out their speed; more would only contend for the counters.
    constexpr int pieces_per_thread = 8;
    region.task = task;
    region.closure = closure;
    region.chunk = std::max(1, size / (pieces_per_thread * context->thread_count));
    region.error.store(0, std::memory_order_relaxed);
    split(context, min, size);
    context->pool.run();
    return region.error.load(std::memory_order_relaxed);
}

// Kernels are built without asserts and use what they get, so a lack of memory must not return into them. They hold nothing that a
// longjmp would leak but scratch memory, which the landing place takes back.
void *allocate_scratch(void *user_context, size_t bytes) {
    Worker &worker = worker_of(user_context);
    void *memory = worker.scratch.take(bytes);
    if (memory) return memory;
    fail_run(worker.context, SCALIDE_OUT_OF_MEMORY,
             "a kernel must get scratch memory, got none. Bind a smaller batch or use fewer threads.");
    longjmp(*worker.escape, 1);
}

void release_scratch(void *user_context, void *memory) { worker_of(user_context).scratch.give_back(memory); }

void kernel_error(void *user_context, const char *message) { fail_run(worker_of(user_context).context, SCALIDE_KERNEL_FAILED, message); }

} // namespace

const KernelServices kernel_services = {parallel_for, allocate_scratch, release_scratch, kernel_error};

void participate(void *owner, int index) {
    auto *context = static_cast<scalide_context *>(owner);
    Worker &worker = context->workers[index];
    jmp_buf here;
    jmp_buf *const outer = worker.escape;
    void *const mark = worker.scratch.mark();
    worker.escape = &here;
    worker.in_region = true;
    if (_setjmp(here) == 0) {
        for (int i = 0; i < context->thread_count; ++i)
            run_span(context->region, worker, context->workers[(index + i) % context->thread_count]);
    } else {
        worker.scratch.rewind(mark);
        context->region.error.store(SCALIDE_OUT_OF_MEMORY, std::memory_order_relaxed);
    }
    worker.in_region = false;
    worker.escape = outer;
}

} // namespace scalide
