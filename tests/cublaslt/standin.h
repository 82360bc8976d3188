#pragma once

/// What the stand-in for cuBLASLt exports beside cuBLASLt's functions. It writes down each call that makes, sets or runs
/// something, and each descriptor in the words of cublasLt.h's attribute numbers.
struct StandinState {
    const char *log; ///< all calls since the last reset, a line each
    int live;        ///< objects that were created and not destroyed
    int calls;       ///< that can fail, since the last reset
    int searches;    ///< for algorithms, since the last reset
};
using StandinRead = StandinState (*)();
/// Forgets the log; call number `failing` from now on (0 is the first; -1: none) fails, and `candidates` algorithms are found, of which the
/// first `broken` fail when they run.
using StandinReset = void (*)(int failing, int candidates, int broken);
