// The services that kernels use during a run: parallel loops and scratch memory.
#include "base/float_environment.h"
#include "bind/recorder.h"
#include "context/context.h"
#include <algorithm>

namespace scalide {

namespace {

Worker &worker_of(void *user_context) { return *static_cast<Worker *>(static_cast<KernelContext *>(user_context)); }

int run_serially(void *user_context, HalideTask task, int min, int size, uint8_t *closure) {
    int error = 0;
    for (int i = 0; i < size && error == 0; ++i) error = task(user_context, min + i, closure);
    return error;
}

void run_span(Loop &loop, Span &span, Worker &worker) {
    while (loop.error.load(std::memory_order_relaxed) == 0) {
        const int64_t begin = span.next.fetch_add(loop.chunk, std::memory_order_relaxed), end = span.end.load(std::memory_order_relaxed);
        if (begin >= end) return;
        const auto length = static_cast<int>(std::min<int64_t>(loop.chunk, end - begin));
        const int error = run_serially(static_cast<KernelContext *>(&worker), loop.task, static_cast<int>(begin), length, loop.closure);
        if (error != 0) loop.error.store(error, std::memory_order_relaxed);
    }
}

/// Runs `work`, which is part of a loop. If a kernel gets no memory, it is abandoned and its scratch memory is freed.
template<typename Work>
void guard(Worker &worker, Loop &loop, const Work &work) {
    jmp_buf here;
    jmp_buf *const outer = worker.escape;
    void *const mark = worker.scratch.mark();
    worker.escape = &here;
    if (_setjmp(here) == 0) {
        work();
    } else {
        worker.scratch.rewind(mark);
        loop.error.store(SCALIDE_OUT_OF_MEMORY, std::memory_order_relaxed);
    }
    worker.escape = outer;
}

void start(Loop &loop, HalideTask task, uint8_t *closure, int chunk) {
    loop.task = task;
    loop.closure = closure;
    loop.chunk = std::max(1, chunk);
    loop.error.store(0, std::memory_order_relaxed);
}

void set(Span &span, int64_t begin, int64_t end) {
    span.next.store(begin, std::memory_order_relaxed);
    span.end.store(end, std::memory_order_relaxed);
}

/// Takes pieces of an inner loop. The worker is in the loop's region or owns the loop.
void run_inner(Worker &worker, InnerLoop &inner) {
    worker.nesting = Nesting::in_inner_loop;
    guard(worker, inner.loop, [&] { run_span(inner.loop, inner.span, worker); });
    worker.nesting = Nesting::in_region;
}

int share_inner(Worker &worker, HalideTask task, int min, int size, uint8_t *closure) {
    InnerLoop &inner = worker.inner;
    start(inner.loop, task, closure, 1);
    set(inner.span, min, int64_t(min) + size);
    inner.gate.open();
    run_inner(worker, inner);
    inner.gate.close();
    return inner.loop.error.load(std::memory_order_relaxed);
}

void help(Worker &worker, InnerLoop &inner) {
    uint32_t seen = 0;
    if (inner.span.next.load(std::memory_order_relaxed) >= inner.span.end.load(std::memory_order_relaxed) || !inner.gate.enter(seen))
        return;
    run_inner(worker, inner);
    inner.gate.leave();
}

// Several pieces per thread compensate for different speeds. More pieces would only add contention for the counters.
constexpr int pieces_per_thread = 8;

/// One task of the application's threads.
void run_task(void *owner, int32_t index) {
    const FloatEnvironment environment;
    participate(owner, index);
}

int run_region(scalide_context *context, HalideTask task, int min, int size, uint8_t *closure) {
    const int64_t threads = context->thread_count;
    start(context->region, task, closure, static_cast<int>(size / (pieces_per_thread * threads)));
    for (int64_t i = 0; i < threads; ++i) set(context->workers[i].span, min + i * size / threads, min + (i + 1) * size / threads);
    if (context->parallel_for.run) {
        context->parallel_for.run(context->parallel_for.user, context->thread_count, run_task, context);
    } else {
        context->pool.run();
    }
    return context->region.error.load(std::memory_order_relaxed);
}

int parallel_for(void *user_context, HalideTask task, int min, int size, uint8_t *closure) {
    Worker &worker = worker_of(user_context);
    if (worker.nesting == Nesting::in_inner_loop || size <= 1 || worker.context->thread_count == 1)
        return run_serially(user_context, task, min, size, closure);
    if (worker.nesting == Nesting::in_region) return share_inner(worker, task, min, size, closure);
    return run_region(worker.context, task, min, size, closure);
}

// Kernels are built without asserts and do not check a pointer, so this function must not return to them if memory is lacking. A longjmp
// would leak only scratch memory, and the code at its target frees that memory.
void *allocate_scratch(void *user_context, size_t bytes) {
    Worker &worker = worker_of(user_context);
    void *memory = worker.scratch.take(bytes);
    if (memory) return memory;
    fail_run(worker.context, SCALIDE_OUT_OF_MEMORY,
             "out of memory: cannot allocate scratch memory of the kernel. Bind smaller arrays, or use fewer threads.");
    longjmp(*worker.escape, 1);
}

void release_scratch(void *user_context, void *memory) { worker_of(user_context).scratch.give_back(memory); }

void kernel_error(void *user_context, const char *message) { fail_run(worker_of(user_context).context, SCALIDE_KERNEL_FAILED, message); }

int launch(void *user_context, const HalideLaunch &launch) { return worker_of(user_context).context->recorder->launch(launch); }

int allocate_on_device(void *user_context, HalideBuffer *buffer) { return worker_of(user_context).context->recorder->allocate(*buffer); }

} // namespace

const KernelServices kernel_services = {parallel_for, allocate_scratch, release_scratch, kernel_error, launch, allocate_on_device};

void participate(void *owner, int index) {
    auto *context = static_cast<scalide_context *>(owner);
    const int threads = context->thread_count;
    Worker &worker = context->workers[index];
    const auto other = [&](int i) -> Worker & { return context->workers[(index + i) % threads]; };
    context->busy.fetch_add(1, std::memory_order_relaxed);
    worker.nesting = Nesting::in_region;
    guard(worker, context->region, [&] {
        for (int i = 0; i < threads; ++i) run_span(context->region, other(i).span, worker);
    });
    context->busy.fetch_sub(1, std::memory_order_relaxed);
    while (context->busy.load(std::memory_order_relaxed) > 0) {
        for (int i = 1; i < threads; ++i) help(worker, other(i).inner);
        pause();
    }
    worker.nesting = Nesting::outside;
}

} // namespace scalide
