#pragma once
#include <csignal>
#include <initializer_list>

namespace scalide {

/// Blocks signals in this thread, so that a thread created meanwhile never handles those of the application. Signals of a thread's own
/// faults stay unblocked: a crash reporter sees a fault of a kernel only if they do, and the system ends the process without them.
class BlockedSignals {
public:
    BlockedSignals() {
        sigset_t blocked;
        sigfillset(&blocked);
        for (const int fault : {SIGILL, SIGFPE, SIGSEGV, SIGBUS, SIGTRAP}) sigdelset(&blocked, fault);
        pthread_sigmask(SIG_SETMASK, &blocked, &old_);
    }
    ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &old_, nullptr); }
    BlockedSignals(const BlockedSignals &) = delete;
    BlockedSignals &operator=(const BlockedSignals &) = delete;

private:
    sigset_t old_;
};

} // namespace scalide
