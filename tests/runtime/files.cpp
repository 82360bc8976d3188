// Fails each file operation of saving and loading once.
#include "file_faults.h"
#include "fixture.h"
#include "scalide/safetensors.h"
#include "support/folder.h"
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace scalide::test;
namespace fs = std::filesystem;

namespace {

std::string state(const Folder &folder) { return folder.file("state.safetensors"); }

/// The last save wrote the file, but could not flush its folder.
bool is_flush_of_folder = false;

scalide_status save(const Folder &folder, float value) {
    std::vector<float> elements(1000, value);
    const int64_t count = 1000;
    const scalide_tensor tensor = {"x", scalide_dense_array(elements.data(), nullptr, SCALIDE_F32, 1, &count)};
    const scalide_safetensors_content content = {&tensor, 1, nullptr, 0};
    char message[500] = "";
    const scalide_status status = scalide_safetensors_write(state(folder).c_str(), &content, message, sizeof(message));
    EXPECT_EQ(status == SCALIDE_OK, message[0] == 0);
    is_flush_of_folder = std::string(message).find("the file is written, but its folder cannot be flushed") != std::string::npos;
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

} // namespace

TEST(runtime, every_failing_file_operation_of_saving_leaves_a_whole_file) {
    const Folder folder;
    ASSERT_EQ(save(folder, 1), SCALIDE_OK);
    scalide_status status = SCALIDE_OK;
    const auto check = [&] {
        EXPECT_EQ(load(folder), status == SCALIDE_OK || is_flush_of_folder ? 2 : 1);
        EXPECT_EQ(std::distance(fs::directory_iterator(folder.path), fs::directory_iterator()), 1) << "a part is left";
        ASSERT_EQ(save(folder, 1), SCALIDE_OK);
    };
    // open, header, data, flush, close, rename; open, flush and close of the folder
    EXPECT_GE(fail_each_operation([&] { status = save(folder, 2); }, check), 9);
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
    operation_error = EINTR;
    const auto work = [&] {
        EXPECT_EQ(save(folder, 1), SCALIDE_OK);
        EXPECT_EQ(load(folder), 1);
    };
    EXPECT_GE(fail_each_operation(work, [] {}), 11);
    operation_error = EIO;
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
