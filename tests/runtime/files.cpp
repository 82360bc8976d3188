// Fails each file operation of saving and loading once: the linker redirects the runtime's calls here (--wrap).
#include "fixture.h"
#include "scalide/safetensors.h"
#include "support/folder.h"
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdarg>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <string>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace scalide::test;
namespace fs = std::filesystem;

namespace {

/// File operations since `operations` was set to 0, and which one (by number) fails; -1 = none.
std::atomic<int> operations{0}, operation_to_fail{-1};
int error = EIO;

bool fails(bool may_be_interrupted = false) {
    if (operations++ != operation_to_fail || (error == EINTR && !may_be_interrupted)) return false;
    errno = error;
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
ssize_t __wrap_write(int file, const void *memory, size_t bytes) { return fails(true) ? -1 : __real_write(file, memory, bytes); }
int __wrap_fsync(int file) { return fails(true) ? -1 : __real_fsync(file); }
// A file whose closing fails is closed.
int __wrap_close(int file) {
    const bool failed = fails();
    const int status = __real_close(file);
    return failed ? -1 : status;
}
int __wrap_rename(const char *from, const char *to) { return fails() ? -1 : __real_rename(from, to); }
}

namespace {

size_t open_files() {
    const fs::directory_iterator files("/proc/self/fd");
    return static_cast<size_t>(std::distance(begin(files), end(files)));
}

std::string state(const Folder &folder) { return folder.file("state.safetensors"); }

scalide_status save(const Folder &folder, float value) {
    std::vector<float> elements(1000, value);
    const int64_t count = 1000;
    const scalide_tensor tensor = {"x", scalide_dense_array(elements.data(), nullptr, SCALIDE_F32, 1, &count)};
    const scalide_safetensors_content content = {&tensor, 1, nullptr, 0};
    char message[500] = "";
    const scalide_status status = scalide_safetensors_write(state(folder).c_str(), &content, message, sizeof(message));
    EXPECT_EQ(status == SCALIDE_OK, message[0] == 0);
    return status;
}

/// What all elements of the file are; -1 when it cannot be read.
float load(const Folder &folder) {
    char message[500] = "";
    scalide_safetensors *file = nullptr;
    const scalide_status status = scalide_safetensors_read(state(folder).c_str(), &file, message, sizeof(message));
    EXPECT_EQ(status == SCALIDE_OK, message[0] == 0);
    if (status != SCALIDE_OK) return -1;
    const auto *elements = static_cast<const float *>(scalide_safetensors_tensor(file, 0)->array.data);
    const float value = elements[0];
    for (int i = 0; i < 1000; ++i) EXPECT_EQ(elements[i], value) << "two files in one";
    scalide_safetensors_close(file);
    return value;
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

} // namespace

TEST(runtime, every_failing_file_operation_of_saving_leaves_a_whole_file) {
    const Folder folder;
    ASSERT_EQ(save(folder, 1), SCALIDE_OK);
    scalide_status status = SCALIDE_OK;
    const auto check = [&] {
        EXPECT_EQ(load(folder), status == SCALIDE_OK ? 2 : 1);
        EXPECT_EQ(std::distance(fs::directory_iterator(folder.path), fs::directory_iterator()), 1) << "a part is left";
        ASSERT_EQ(save(folder, 1), SCALIDE_OK);
    };
    // open, header, data, flush, close, rename
    EXPECT_GE(fail_each_operation([&] { status = save(folder, 2); }, check), 6);
    EXPECT_EQ(status, SCALIDE_OK);
}

TEST(runtime, every_failing_file_operation_of_loading_is_a_status) {
    const Folder folder;
    ASSERT_EQ(save(folder, 1), SCALIDE_OK);
    // open, size, length of the header, header, data, close
    EXPECT_GE(fail_each_operation([&] { load(folder); }, [&] { EXPECT_EQ(load(folder), 1); }), 5);
}

TEST(runtime, every_failing_file_operation_of_a_second_load_is_a_status) {
    const Folder folder;
    const std::string path = folder.file("sample.so");
    const Context context;
    scalide_library *first = nullptr;
    fs::copy_file(SCALIDE_SAMPLE_LIBRARY, path);
    ASSERT_EQ(scalide_load(context.handle, path.c_str(), &first), SCALIDE_OK);
    std::ofstream(path, std::ios::binary | std::ios::in | std::ios::out).put('\x7f'); // in place: it is copied
    const auto load_again = [&] {
        scalide_library *library = nullptr;
        const scalide_status status = scalide_load(context.handle, path.c_str(), &library);
        EXPECT_TRUE(status == SCALIDE_OK || *scalide_message(context.handle)) << status;
        EXPECT_EQ(library != nullptr, status == SCALIDE_OK);
        scalide_library_close(library);
    };
    EXPECT_GE(fail_each_operation(load_again, load_again), 10);
    scalide_library_close(first);
}

TEST(runtime, every_interrupted_file_operation_is_done_again) {
    const Folder folder;
    error = EINTR;
    const auto work = [&] {
        EXPECT_EQ(save(folder, 1), SCALIDE_OK);
        EXPECT_EQ(load(folder), 1);
    };
    EXPECT_GE(fail_each_operation(work, [] {}), 11);
    error = EIO;
}

TEST(runtime, a_killed_save_leaves_a_whole_file) {
    const Folder folder;
    ASSERT_EQ(save(folder, 1), SCALIDE_OK);
    const unsigned seed = std::random_device()();
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    for (int kill_number = 0; kill_number < 200; ++kill_number) {
        const pid_t child = fork();
        if (child == 0) {
            for (float value = 2;; ++value) save(folder, value);
        }
        std::this_thread::sleep_for(std::chrono::microseconds(random() % 4000));
        kill(child, SIGKILL);
        waitpid(child, nullptr, 0);
        EXPECT_GE(load(folder), 1);
    }
    EXPECT_EQ(save(folder, 1), SCALIDE_OK);
    EXPECT_EQ(load(folder), 1);
}
