#pragma once
#include "base/kernel_context.h"
#include "base/scratch.h"
#include "base/text.h"
#include "devices/device.h"
#include "groups/group.h"
#include "scalide/scalide.h"
#include "threads/thread_pool.h"
#include <csetjmp>
#include <pthread.h>

namespace scalide {

/// A parallel loop in progress.
struct Loop {
    HalideTask task;
    uint8_t *closure;
    int chunk; ///< iterations that a thread takes at a time
    std::atomic<int> error;
};

/// A piece of a loop, from which threads take chunks.
struct Span {
    std::atomic<int64_t> end;
    alignas(64) std::atomic<int64_t> next; ///< first iteration that no thread has taken
};

/// A parallel loop inside a parallel region. The worker that starts it runs it; other workers help if they have no other work.
struct InnerLoop {
    Loop loop;
    Span span;
    Gate gate;
};

enum class Nesting : uint8_t { outside, in_region, in_inner_loop };

/// One thread that runs kernels. Its address is the kernels' user context. Each worker owns a span of the region's loop, which is the same
/// share in every loop. So a core reads data that its own kernels wrote and that is still in its cache. A worker that has finished its own
/// span takes pieces of other spans.
struct Worker : KernelContext {
    scalide_context *context;
    Scratch scratch;
    jmp_buf *escape; ///< target of the longjmp if a kernel gets no memory, because generated code cannot return an error
    Nesting nesting;
    Span span;
    InnerLoop inner;
};

/// A function of the application that can stop runs.
struct Poll {
    int (*call)(void *user); ///< NULL: none
    void *user;
    int64_t next; ///< nanoseconds of the coarse clock, before which it is not called
};

class Recorder;

Text start_message(scalide_context *context);
/// Passes the message to the log of the context if the status is a failure. Returns the status.
scalide_status report(scalide_context *context, scalide_status status);

/// Adds a holder of the context: a binding, or constants on a device.
void retain_context(scalide_context *context);
/// Removes a holder. The last one destroys the context.
void release_context(scalide_context *context);

/// Records the first failure of a run and ignores later ones. Any thread may call it.
void fail_run(scalide_context *context, scalide_status status, const char *what);

/// Gives each thread at least this much scratch memory. False: out of memory.
bool reserve_scratch(scalide_context *context, uint64_t bytes);
/// Called after a run in which a thread's scratch memory grew. Gives all threads as much, so that the next run allocates nothing.
void level_scratch(scalide_context *context);

extern const KernelServices kernel_services;
/// What each thread of the pool does in a region.
void participate(void *context, int worker);

} // namespace scalide

struct scalide_context {
    std::atomic<pthread_t> user{0};  ///< the thread that runs a function of the C interface; 0: none
    int32_t entries = 0;             ///< functions that this thread has entered besides the first one
    std::atomic<int32_t> holders{1}; ///< the caller's handle, bindings, and constants on a device
    scalide::ThreadPool pool;
    scalide_allocator allocator;
    scalide_parallel_for parallel_for; ///< run = NULL: the pool
    void (*log)(void *user, const char *message);
    void *log_user;
    bool require_libraries; ///< see scalide_options
    scalide::Loop region;
    std::atomic<int> busy; ///< workers that still take pieces of the region's loop
    scalide::Worker *workers;
    int32_t thread_count;
    int chunks_made;         ///< of all workers, at the end of the last run
    scalide::Device *device; ///< NULL: the CPU
    scalide::Module *modules;
    scalide::Group *groups = nullptr;        ///< of which the context is a rank, the last one that it has joined first
    scalide::Recorder *recorder;             ///< set while a binding's kernels report what they launch
    std::atomic<bool> is_interrupted{false}; ///< see scalide_interrupt
    scalide::Poll poll;
    std::atomic<int> run_status;
    char failure[1024]; ///< of the run in progress; written by the thread that sets run_status
    char message[1536];
};
