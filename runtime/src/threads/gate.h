#pragma once
#include <atomic>
#include <cstdint>
#include <sched.h>

namespace scalide {

inline void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

/// Lets threads in while it is open. The thread that closes it waits only for the threads inside.
class Gate {
public:
    void open() { state_.fetch_add(one_epoch); }

    /// Closes the gate and returns when the last thread has left.
    void close() {
        uint64_t state = state_.fetch_add(one_epoch) + one_epoch;
        for (int spins = 0; inside(state) != 0; state = state_.load(std::memory_order_acquire)) {
            if (++spins < spins_before_yield) {
                pause();
            } else {
                sched_yield();
            }
        }
    }

    /// True if the gate is open and `seen` is an earlier opening.
    bool is_open_anew(uint32_t seen) const { return is_open_anew(state_.load(), seen); }

    /// Enters, at most once per opening. `seen` stores the last opening and starts at 0. Data that was written before the gate opened is
    /// visible inside.
    bool enter(uint32_t &seen) {
        uint64_t state = state_.load(std::memory_order_acquire);
        while (is_open_anew(state, seen)) {
            if (state_.compare_exchange_weak(state, state + 1, std::memory_order_acq_rel)) {
                seen = epoch(state);
                return true;
            }
        }
        return false;
    }
    void leave() { state_.fetch_sub(1, std::memory_order_release); }

private:
    static constexpr uint64_t one_epoch = uint64_t(1) << 32;
    /// The closing thread waits for the last piece of work. If the working thread was preempted, the closing thread yields its time slice.
    static constexpr int spins_before_yield = 10000;

    static uint32_t epoch(uint64_t state) { return static_cast<uint32_t>(state >> 32); }
    static uint32_t inside(uint64_t state) { return static_cast<uint32_t>(state); }
    static bool is_open_anew(uint64_t state, uint32_t seen) { return (epoch(state) & 1) && epoch(state) != seen; }

    std::atomic<uint64_t> state_{0}; ///< upper half: epoch, odd while open; lower half: threads inside
};

} // namespace scalide
