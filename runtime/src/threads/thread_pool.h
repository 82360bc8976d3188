#pragma once
#include "scalide/scalide.h"
#include "threads/gate.h"
#include <pthread.h>
#include <sys/types.h>

namespace scalide {

/// Threads that join parallel regions. The caller opens a region, works in it as worker 0, and closes it. It waits only for threads that
/// have joined, not for threads that the system has not woken up in time. Between regions, threads spin for some microseconds because the
/// next kernel usually follows soon. Then they sleep on a futex. After a fork between two regions, the child process has only the caller's
/// thread.
class ThreadPool {
public:
    /// Runs in every participating thread and takes work until none is left.
    using Participate = void (*)(void *owner, int worker);

    /// Starts the threads 1 to count - 1. Returns false if the system refuses. Call stop even then.
    bool start(int count, Participate participate, void *owner, const scalide_allocator &allocator);
    void stop();
    /// False in a forked process, which has only the thread that called fork.
    bool has_threads() const;
    /// Runs one parallel region. The participants see everything that was written before it, and the caller sees what they wrote.
    void run();

private:
    struct Thread {
        ThreadPool *pool;
        int worker;
        pthread_t handle;
    };

    static void *thread_main(void *thread);
    void work(int worker);
    void sleep(uint32_t seen);
    void wake();

    alignas(64) Gate gate_;                       // of the region
    alignas(64) std::atomic<uint32_t> signal_{0}; // futex word; counts openings
    std::atomic<int32_t> sleepers_{0};
    std::atomic<bool> stopping_{false};
    Participate participate_ = nullptr;
    void *owner_ = nullptr;
    pid_t process_ = 0; // the process that started the threads
    scalide_allocator allocator_ = {};
    Thread *threads_ = nullptr;
    int started_ = 0;
    int spins_ = 0;
};

/// Returns the number of CPUs that this process may use, at least 1.
int available_cpus();

} // namespace scalide
