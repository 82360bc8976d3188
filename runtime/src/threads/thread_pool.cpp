#include "threads/thread_pool.h"
#include "base/blocked_signals.h"
#include "base/float_environment.h"
#include "base/memory.h"
#include <climits>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace scalide {

namespace {

// About 50 us on current x86 cores (20 to 60 ns a pause): longer than any gap between two kernels of a step.
constexpr int spins_before_sleep = 2000;

void futex(std::atomic<uint32_t> &word, int operation, uint32_t value) {
    static_assert(sizeof(word) == sizeof(uint32_t), "a futex word is 32 bits");
    syscall(SYS_futex, &word, operation, value, nullptr, nullptr, 0);
}

} // namespace

bool ThreadPool::start(int count, Participate participate, void *owner, const scalide_allocator &allocator) {
    allocator_ = allocator;
    participate_ = participate;
    owner_ = owner;
    process_ = getpid();
    spins_ = count <= available_cpus() ? spins_before_sleep : 0;
    threads_ = static_cast<Thread *>(allocate(allocator_, sizeof(Thread) * static_cast<uint64_t>(count)));
    if (!threads_) return false;
    const BlockedSignals blocked;
    bool good = true;
    for (int i = 0; good && i < count - 1; ++i) {
        threads_[i] = {this, i + 1, {}};
        good = pthread_create(&threads_[i].handle, nullptr, thread_main, &threads_[i]) == 0;
        started_ += good;
    }
    return good;
}

void ThreadPool::stop() {
    stopping_.store(true);
    wake();
    for (int i = 0; has_threads() && i < started_; ++i) pthread_join(threads_[i].handle, nullptr);
    release(allocator_, threads_);
    threads_ = nullptr;
    started_ = 0;
}

bool ThreadPool::has_threads() const { return getpid() == process_; }

void ThreadPool::run() {
    gate_.open();
    wake();
    participate_(owner_, 0);
    gate_.close();
}

// A thread registers as a sleeper before it checks the gate for the last time. The caller opens the gate before it looks for sleepers. So
// at least one of the two sees the other.
void ThreadPool::wake() {
    signal_.fetch_add(1);
    if (sleepers_.load() > 0) futex(signal_, FUTEX_WAKE_PRIVATE, INT_MAX);
}

void ThreadPool::sleep(uint32_t seen) {
    sleepers_.fetch_add(1);
    const uint32_t signal = signal_.load();
    const bool has_work = gate_.is_open_anew(seen);
    if (!has_work && !stopping_.load()) futex(signal_, FUTEX_WAIT_PRIVATE, signal);
    sleepers_.fetch_sub(1);
}

void ThreadPool::work(int worker) {
    uint32_t seen = 0;
    for (int spins = 0; !stopping_.load(std::memory_order_relaxed); ++spins) {
        if (gate_.enter(seen)) {
            participate_(owner_, worker);
            gate_.leave();
            spins = 0;
        } else if (spins < spins_) {
            pause();
        } else {
            sleep(seen);
            spins = 0;
        }
    }
}

void *ThreadPool::thread_main(void *argument) {
    const FloatEnvironment environment;
    const auto *thread = static_cast<const Thread *>(argument);
    thread->pool->work(thread->worker);
    return nullptr;
}

int available_cpus() {
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    if (sched_getaffinity(0, sizeof(cpus), &cpus) != 0) return 1;
    const int count = CPU_COUNT(&cpus);
    return count > 0 ? count : 1;
}

} // namespace scalide
