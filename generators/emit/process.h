#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace scalide {

/// What became of a child process.
struct ChildResult {
    bool ok = false;
    std::string reason; ///< "exit status 3", "signal 6 (Aborted)"; empty when ok
    std::string output; ///< the end of what it printed, at most 4 KiB
};

/// Runs each job in a forked child of its own, `jobs` at a time; a job reports failure by an exception (its words go to `output`).
/// `done(index, result)` is called in the parent as children end. Children die with the parent. Needs a single-threaded parent.
void run_in_children(const std::vector<std::function<void()>> &work, int jobs,
                     const std::function<void(size_t, const ChildResult &)> &done);

/// False when this machine has no process of that number, or when `process` is none.
bool is_running(int process);

/// Runs a program found on PATH, with its output captured.
ChildResult run_command(const std::vector<std::string> &command);

} // namespace scalide
