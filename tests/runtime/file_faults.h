#pragma once
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <functional>

/// File operations that fail, or end the process: the linker redirects the runtime's calls to file_faults.cpp (--wrap).
namespace scalide::test {

/// File operations since `operations` was set to 0, and which one (by number) fails or is the last one of the process; -1 = none.
extern std::atomic<int> operations, operation_to_fail, operation_to_die;
extern int operation_error; ///< the errno of the operation that fails
/// Called before each write, by the thread that writes. It may wait.
extern std::function<void()> before_write;
/// The bytes that still fit on the disk; -1 = no limit. A write that does not fit writes what fits, and the next one gives ENOSPC.
extern std::atomic<int64_t> free_bytes;

size_t open_files();
/// Lets each file operation of `work` fail once; `check` looks at what is left. Returns how many there are.
int fail_each_operation(const std::function<void()> &work, const std::function<void()> &check);
/// Runs `work` in child processes that die at each of its file operations: half of the writes before, half of them after a part of the
/// data. `check` looks at what is left. Returns how many operations there are.
int die_at_each_operation(const std::function<void()> &work, const std::function<void()> &check);

} // namespace scalide::test
