#pragma once
#include "threads/gate.h"
#include <pthread.h>
#include <sys/types.h>

namespace scalide {

/// Threads that join parallel regions. The caller opens a region, works in it as worker 0, closes it and waits only for the threads that
/// joined: a thread that the system has not woken up in time is not waited for. Between regions threads spin for some microseconds (the
/// next kernel is near), then sleep on a futex. In a process that was forked between two regions the caller is alone.
class ThreadPool {
public:
    /// Runs in every participating thread and takes work until none is left.
    using Participate = void (*)(void *owner, int worker);

    /// Starts threads 1 to count - 1. False: the system refused; call stop nevertheless.
    bool start(int count, Participate participate, void *owner);
    void stop();
    /// One parallel region. Everything written before is seen by the participants, and the other way round at the end.
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
    alignas(64) std::atomic<uint32_t> signal_{0}; // futex word, counts openings
    std::atomic<int32_t> sleepers_{0};
    std::atomic<bool> stopping_{false};
    Participate participate_ = nullptr;
    void *owner_ = nullptr;
    pid_t process_ = 0; // that started them
    Thread *threads_ = nullptr;
    int started_ = 0;
    int spins_ = 0;
};

/// CPUs that this process may run on, at least 1.
int available_cpus();

} // namespace scalide
