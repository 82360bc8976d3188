#include "file_faults.h"
#include <algorithm>
#include <csignal>
#include <cstdarg>
#include <dirent.h>
#include <fcntl.h>
#include <filesystem>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace fs = std::filesystem;

namespace scalide::test {

std::atomic<int> operations{0}, operation_to_fail{-1}, operation_to_die{-1};
int operation_error = EIO;
std::function<void()> before_write;
std::atomic<int64_t> free_bytes{-1};

} // namespace scalide::test

using namespace scalide::test;

namespace {

bool fails(bool may_be_interrupted = false) {
    const int number = operations++;
    if (number == operation_to_die) raise(SIGKILL);
    if (number != operation_to_fail || (operation_error == EINTR && !may_be_interrupted)) return false;
    errno = operation_error;
    return true;
}

} // namespace

extern "C" {
int __real_open(const char *path, int flags, ...);
int __real_fstat(int file, struct stat *facts);
ssize_t __real_pread(int file, void *memory, size_t bytes, off_t offset);
ssize_t __real_write(int file, const void *memory, size_t bytes);
int __real_fsync(int file);
int __real_close(int file);
int __real_rename(const char *from, const char *to);
int __real_mkdir(const char *path, mode_t mode);
int __real_remove(const char *path);
int __real_flock(int file, int operation);
DIR *__real_opendir(const char *path);

int __wrap_open(const char *path, int flags, ...) {
    std::va_list more;
    va_start(more, flags);
    const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : 0;
    va_end(more);
    return fails(true) ? -1 : __real_open(path, flags, mode);
}
int __wrap_fstat(int file, struct stat *facts) { return fails() ? -1 : __real_fstat(file, facts); }
ssize_t __wrap_pread(int file, void *memory, size_t bytes, off_t offset) {
    return fails(true) ? -1 : __real_pread(file, memory, bytes, offset);
}
ssize_t __wrap_write(int file, const void *memory, size_t bytes) {
    if (operations == operation_to_die && bytes > 1) { // a part of the data is written
        if (__real_write(file, memory, bytes / 2) < 0) return -1;
    }
    if (before_write) before_write();
    if (fails(true)) return -1;
    const int64_t free = free_bytes;
    if (free < 0) return __real_write(file, memory, bytes);
    if (free == 0) {
        errno = ENOSPC;
        return -1;
    }
    const ssize_t written = __real_write(file, memory, std::min(bytes, static_cast<size_t>(free)));
    free_bytes = free - written;
    return written;
}
int __wrap_fsync(int file) { return fails(true) ? -1 : __real_fsync(file); }
// A file whose closing fails is closed.
int __wrap_close(int file) {
    const bool failed = fails();
    const int status = __real_close(file);
    return failed ? -1 : status;
}
int __wrap_rename(const char *from, const char *to) { return fails() ? -1 : __real_rename(from, to); }
int __wrap_mkdir(const char *path, mode_t mode) { return fails() ? -1 : __real_mkdir(path, mode); }
int __wrap_remove(const char *path) { return fails() ? -1 : __real_remove(path); }
int __wrap_flock(int file, int operation) { return fails(true) ? -1 : __real_flock(file, operation); }
DIR *__wrap_opendir(const char *path) { return fails() ? nullptr : __real_opendir(path); }
}

namespace scalide::test {

size_t open_files() {
    const fs::directory_iterator files("/proc/self/fd");
    return static_cast<size_t>(std::distance(begin(files), end(files)));
}

/// Lets each file operation of `work` fail once; `check` looks at what is left. Returns how many there are.
int fail_each_operation(const std::function<void()> &work, const std::function<void()> &check) {
    for (int i = 0;; ++i) {
        const size_t open_before = open_files();
        operations = 0;
        operation_to_fail = i;
        work();
        const bool was_reached = operations > i;
        operation_to_fail = -1;
        EXPECT_EQ(open_files(), open_before) << "a file stays open after operation " << i;
        check();
        if (!was_reached) return i;
    }
}

int die_at_each_operation(const std::function<void()> &work, const std::function<void()> &check) {
    for (int i = 0;; ++i) {
        const pid_t child = fork();
        if (child == 0) {
            operations = 0;
            operation_to_die = i;
            work();
            _exit(0);
        }
        int status = 0;
        waitpid(child, &status, 0);
        check();
        if (!WIFSIGNALED(status)) return i;
    }
}

} // namespace scalide::test
