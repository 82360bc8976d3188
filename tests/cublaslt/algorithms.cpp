// Which algorithm is taken, and what is kept for later processes.
#include "fixture.h"
#include <filesystem>
#include <fstream>

namespace scalide {

namespace {

namespace fs = std::filesystem;

class algorithms : public cublaslt_test {
protected:
    algorithms() { fs::remove_all(folder_); }
    ~algorithms() override { fs::remove_all(folder_); }

    std::string find(MatmulSearch search = MatmulSearch::heuristic, int64_t k = 128) {
        Matmul matmul(*library_);
        return make_ready(matmul, f8_matmul(64, 96, k), search, folder_.c_str());
    }
    fs::path only_file() const { return fs::directory_iterator(folder_)->path(); }

    const fs::path folder_ = fs::path(testing::TempDir()) / ("scalide_algorithms_" + std::to_string(getpid()));
};

} // namespace

TEST_F(algorithms, the_first_that_runs_is_taken) {
    reset(-1, 4, 2);
    EXPECT_EQ(find(), "");
    const std::string log = state().log;
    EXPECT_NE(log.find("algorithm 3 "), std::string::npos);
    EXPECT_EQ(log.find("algorithm 4 "), std::string::npos) << "the third ran: no other is tried";
    EXPECT_EQ(log.find("algorithm 3 "), log.rfind("algorithm 3 ")) << "one run is enough to know that it runs";
}

TEST_F(algorithms, timing_tries_all) {
    reset(-1, 4, 1);
    EXPECT_EQ(find(MatmulSearch::timing), "");
    EXPECT_NE(std::string(state().log).find("algorithm 4 "), std::string::npos);
}

TEST_F(algorithms, none_is_an_error) {
    reset(-1, 0);
    EXPECT_EQ(find(), "cuBLASLt has no algorithm for this matmul.");
    reset(-1, 3, 3);
    EXPECT_EQ(find(), "cuBLASLt offers 3 algorithms for this matmul, but none of them runs.");
    healthy_ = false; // the launch was taken, the kernel failed
    reset();
    EXPECT_EQ(find(), "cuBLASLt offers 2 algorithms for this matmul, but none of them runs.");
    EXPECT_FALSE(fs::exists(folder_));
}

TEST_F(algorithms, are_found_on_disk) {
    EXPECT_EQ(find(), "");
    EXPECT_EQ(state().searches, 1);
    reset();
    EXPECT_EQ(find(), "");
    EXPECT_EQ(state().searches, 0);
    EXPECT_EQ(find(MatmulSearch::heuristic, 256), "");
    EXPECT_EQ(state().searches, 1) << "another shape is another key";
}

TEST_F(algorithms, of_a_file_are_run_before_they_are_trusted) {
    EXPECT_EQ(find(), "");
    reset(-1, 3, 1); // what the file names no longer runs
    EXPECT_EQ(find(), "");
    EXPECT_EQ(state().searches, 1);
    reset(-1, 3, 1);
    EXPECT_EQ(find(), "");
    EXPECT_EQ(state().searches, 0) << "its place was taken by one that runs";
}

TEST_F(algorithms, of_damaged_files_are_not_read) {
    EXPECT_EQ(find(), "");
    fs::resize_file(only_file(), 100);
    reset();
    EXPECT_EQ(find(), "");
    EXPECT_EQ(state().searches, 1);
    std::fstream file(only_file(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(3);
    file << "another key";
    file.close();
    reset();
    EXPECT_EQ(find(), "");
    EXPECT_EQ(state().searches, 1);
}

TEST_F(algorithms, need_no_folder_that_can_be_written) {
    Matmul matmul(*library_);
    EXPECT_EQ(make_ready(matmul, f8_matmul(64, 96, 128), MatmulSearch::heuristic, "/proc/none"), "");
}

TEST_F(algorithms, have_keys_that_name_all_they_depend_on) {
    char memory[512];
    Text key(memory, sizeof(memory));
    describe_key(f8_layer(64, 96, 128).back().desc, hopper(), "NVIDIA H200", MatmulSearch::timing, key);
    EXPECT_STREQ(memory, "cublaslt 130100 NVIDIA H200 sm_90 timing 1x64x128x96 a f8_e4m3fn k 96 0 256 tensor b f8_e4m3fn k 96 0 256 tensor "
                         "d f8_e4m3fn k 128 0 256 tensor epilogue 1 bf16 amax fast workspace 33554432");
    EXPECT_LT(key.size(), sizeof(memory));
}

} // namespace scalide
