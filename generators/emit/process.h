#pragma once
#include <csignal>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace scalide {

/// The outcome of a child process.
struct ChildResult {
    bool ok = false;
    int exit_status = 0;      ///< if it ended by itself
    std::string reason;       ///< "exit status 3", "signal 6 (Aborted)"; empty when ok
    std::string output;       ///< the end of its output
    std::string way_out;      ///< if the machine, not the child's work, is the cause: a suggested fix, without a final stop
    bool may_succeed = false; ///< a second attempt may succeed, because it had no memory or an unexpected signal ended it
};

struct ChildLimits {
    int jobs = 1;               ///< number of children at a time
    int seconds = 600;          ///< time limit of each child, which is then ended; 0: no limit
    size_t output_bytes = 4096; ///< bytes of its output that are kept, enough for an error message
};

/// Exit status of a child whose job threw a UserError, and of LLVM if it cannot write an object.
inline constexpr int child_of_bad_input = 1;

/// Runs each job in a forked child. A job reports failure by an exception, whose message becomes `output`. The parent calls `done(index,
/// result)` as children end. Children are killed if the parent dies. The parent must be single-threaded. SIGINT, SIGTERM and SIGHUP end the
/// children. When `done` was called for all of them, the signal ends this process, or, if a SignalsHeld exists, run_in_children() throws
/// `Interrupted`. If the process ignores or handles a signal, its setting holds.
void run_in_children(const std::vector<std::function<void()>> &work, const ChildLimits &limits,
                     const std::function<void(size_t, const ChildResult &)> &done);

/// Runs a program found on PATH and captures the last bytes of its output.
ChildResult run_command(const std::vector<std::string> &command, const ChildLimits &limits = {});

/// Thrown if a signal ended the children of `run_in_children`.
class Interrupted : public std::runtime_error {
public:
    explicit Interrupted(int signal);
};

/// Blocks SIGINT, SIGTERM and SIGHUP during its lifetime, so that unfinished work is completed or removed first.
class SignalsHeld {
public:
    SignalsHeld();
    SignalsHeld(const SignalsHeld &) = delete;
    SignalsHeld &operator=(const SignalsHeld &) = delete;
    ~SignalsHeld();
    /// The blocked signals: those of the three that the process does not ignore, and SIGCHLD.
    const sigset_t &held() const { return held_; }

private:
    sigset_t held_, before_;
};

/// False if this machine has no process of that number, or if `process` is no valid number.
bool is_running(int process);

} // namespace scalide
