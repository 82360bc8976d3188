#pragma once
#include <csignal>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace scalide {

/// What became of a child process.
struct ChildResult {
    bool ok = false;
    int exit_status = 0;      ///< where it ended by itself
    std::string reason;       ///< "exit status 3", "signal 6 (Aborted)"; empty when ok
    std::string output;       ///< the end of what it printed
    std::string way_out;      ///< where this machine, not the child's work, is the reason: what to do. No final stop
    bool may_succeed = false; ///< when tried again: it had no memory, or a signal ended it that is not ours
};

struct ChildLimits {
    int jobs = 1;               ///< children at a time
    int seconds = 600;          ///< of each child, which is ended then; 0: no limit
    size_t output_bytes = 4096; ///< that are kept of what it prints: enough of an error's words
};

/// What a child exits with whose job threw a UserError, and LLVM where it cannot write an object.
inline constexpr int child_of_bad_input = 1;

/// Runs each job in a forked child of its own; a job reports failure by an exception (its words go to `output`).
/// `done(index, result)` is called in the parent as children end. Children die with the parent. Needs a single-threaded parent.
/// SIGINT, SIGTERM and SIGHUP end the children, and then, when `done` has heard of all, this process: at once, or by an exception
/// `Interrupted` where someone holds these signals. In a process that ignores or handles them it is as that says.
void run_in_children(const std::vector<std::function<void()>> &work, const ChildLimits &limits,
                     const std::function<void(size_t, const ChildResult &)> &done);

/// Runs a program found on PATH, with the last bytes of its output captured.
ChildResult run_command(const std::vector<std::string> &command, const ChildLimits &limits = {});

/// A signal has ended the children of `run_in_children`.
class Interrupted : public std::runtime_error {
public:
    explicit Interrupted(int signal);
};

/// While one lives the signals that end a process from outside, SIGINT, SIGTERM and SIGHUP, wait: what is half done is finished or removed.
class SignalsHeld {
public:
    SignalsHeld();
    SignalsHeld(const SignalsHeld &) = delete;
    SignalsHeld &operator=(const SignalsHeld &) = delete;
    ~SignalsHeld();
    /// Those of them that the process does not ignore, and SIGCHLD.
    const sigset_t &held() const { return held_; }

private:
    sigset_t held_, before_;
};

/// False when this machine has no process of that number, or when `process` is none.
bool is_running(int process);

} // namespace scalide
