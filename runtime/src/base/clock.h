#pragma once
#include <ctime>

namespace scalide {

/// Returns the seconds of a clock that never jumps.
inline double now() {
    timespec time = {};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

} // namespace scalide
