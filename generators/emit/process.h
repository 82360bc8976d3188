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
    std::string output; ///< the end of what it printed
};

/// Enough of an error's words.
inline constexpr size_t most_output = 4096;

/// Runs each job in a forked child of its own, `jobs` at a time; a job reports failure by an exception (its words go to `output`).
/// `done(index, result)` is called in the parent as children end. Children die with the parent. Needs a single-threaded parent.
void run_in_children(const std::vector<std::function<void()>> &work, int jobs, const std::function<void(size_t, const ChildResult &)> &done,
                     size_t output_bytes = most_output);

/// False when this machine has no process of that number, or when `process` is none.
bool is_running(int process);

/// Runs a program found on PATH, with the last `output_bytes` of its output captured.
ChildResult run_command(const std::vector<std::string> &command, size_t output_bytes = most_output);

} // namespace scalide
