#pragma once
#if defined(__x86_64__)
#include <xmmintrin.h>
#elif defined(__aarch64__)
#include <cstdint>
#else
#include <cfenv>
#endif

namespace scalide {

/// While this object exists, its thread computes with the default floating-point modes: rounding to nearest, subnormal numbers, no traps.
/// The destructor restores the thread's control modes and exception flags. Every entry point that may compute or start threads has such an
/// object, and so has every thread of the runtime. The host may use other modes: XLA and code linked with -ffast-math flush subnormal
/// numbers, for example.
class FloatEnvironment {
public:
    FloatEnvironment() : host_(read()) { reset(); }
    FloatEnvironment(const FloatEnvironment &) = delete;
    FloatEnvironment &operator=(const FloatEnvironment &) = delete;
    ~FloatEnvironment() { write(host_); }

private:
#if defined(__x86_64__)
    using State = unsigned; // the MXCSR register; kernels do not use the x87 unit
    static State read() { return _mm_getcsr(); }
    static void write(State state) { _mm_setcsr(state); }
    static void reset() { write(0x1F80); }
#elif defined(__aarch64__)
    struct State {
        uint64_t control, flags;
    };
    static State read() {
        State state;
        __asm__ volatile("mrs %0, fpcr\n\tmrs %1, fpsr" : "=r"(state.control), "=r"(state.flags));
        return state;
    }
    static void write(const State &state) {
        __asm__ volatile("msr fpcr, %0\n\tmsr fpsr, %1" : : "r"(state.control), "r"(state.flags) : "memory");
    }
    static void reset() { write({0, 0}); }
#else
    using State = std::fenv_t;
    static State read() {
        State state;
        std::fegetenv(&state);
        return state;
    }
    static void write(const State &state) { std::fesetenv(&state); }
    static void reset() { std::fesetenv(FE_DFL_ENV); }
#endif

    const State host_;
};

} // namespace scalide
