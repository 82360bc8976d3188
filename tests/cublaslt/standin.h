#pragma once

/// Functions that the emulated cuBLASLt exports in addition to cuBLASLt's. It logs each call that creates, sets or runs an object, and each
/// descriptor by the attribute numbers of cublasLt.h.
struct StandinState {
    const char *log; ///< all calls since the last reset, one per line
    int live;        ///< objects that were created and not destroyed
    int calls;       ///< that can fail, since the last reset
    int searches;    ///< algorithm searches since the last reset
};
using StandinRead = StandinState (*)();
/// Clears the log and counts calls from 0. The call with number `failing` fails (-1: none). Each search finds `candidates` algorithms, and
/// the first `broken` of them fail when they run.
using StandinReset = void (*)(int failing, int candidates, int broken);
