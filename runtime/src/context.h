#pragma once
#include "kernel_context.h"
#include "scalide/scalide.h"
#include "scratch.h"
#include "text.h"
#include "thread_pool.h"
#include <csetjmp>

namespace scalide {

/// One thread that runs kernels; its address is the kernels' user context.
struct Worker : KernelContext {
    scalide_context *context;
    Scratch scratch;
    bool in_region;                        ///< a parallel loop inside a parallel loop runs serially
    jmp_buf *escape;                       ///< where a kernel that gets no memory is left: generated code cannot return an error
    int end;                               ///< of its span of the parallel loop in progress
    alignas(64) std::atomic<int64_t> next; ///< first iteration of the span that nobody has taken
};

/// The parallel loop in progress. Each worker owns a span of it, the same share in every loop: what a kernel wrote, its successor finds in
/// the cache of the core that made it. Who is done with its own span takes pieces of the others'.
struct Region {
    HalideTask task;
    uint8_t *closure;
    int chunk;
    std::atomic<int> error;
};

Text start_message(scalide_context *context);

/// Records the first failure of a run; later ones are dropped. From any thread.
void fail_run(scalide_context *context, scalide_status status, const char *what);

/// Makes sure that each thread has this much scratch memory. False: out of memory.
bool reserve_scratch(scalide_context *context, uint64_t bytes);
/// After a run in which a thread's scratch grew: as much for all threads, so that the next run takes no memory whoever does the work.
void level_scratch(scalide_context *context);

extern const KernelServices kernel_services;
/// What each thread of the pool does in a region.
void participate(void *context, int worker);

} // namespace scalide

struct scalide_context {
    scalide::ThreadPool pool;
    scalide::Region region;
    scalide::Worker *workers;
    int32_t thread_count;
    int chunks_made; ///< of all workers, at the end of the last run
    std::atomic<int> run_status;
    char failure[512]; ///< of the run in progress; written by whoever sets run_status
    char message[1024];
};
