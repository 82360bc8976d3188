// Concurrent contexts, forked processes and signals. Also built with ThreadSanitizer (tests/threads).
#include "fixture.h"
#include "scalide/safetensors.h"
#include "support/folder.h"
#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <sys/time.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace scalide::test;

namespace {

/// A program of a shared library, loaded, bound and run so often in a context of its own; false when a bit is another one.
bool load_and_run(int number, int runs) {
    Context context(1 + number % 3);
    scalide_library *library = nullptr;
    if (scalide_load(context.handle, SCALIDE_SAMPLE_LIBRARY, &library) != SCALIDE_OK) return false;
    Sample sample(34);
    scalide_binding *binding = nullptr;
    bool good = bind(context, scalide_library_program(context.handle, library, "sample"), sample, &binding) == SCALIDE_OK;
    for (int run = 0; good && run < runs; ++run) {
        sample.w = {1, 2, 3, static_cast<float>(number)};
        sample.w_scale = 1;
        std::vector<float> expected(sample.y.size());
        for (size_t row = 0; row < expected.size(); ++row) expected[row] = sample.expected_y(row);
        good = scalide_run(binding) == SCALIDE_OK && std::memcmp(sample.y.data(), expected.data(), 4 * expected.size()) == 0;
    }
    scalide_binding_destroy(binding);
    scalide_library_close(library);
    return good;
}

/// What a test in a forked process returns; -1 when it does not end by itself.
template<typename Work>
int in_fork(const Work &work) {
    const pid_t child = fork();
    if (child == 0) {
        alarm(60);
        _exit(work());
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool run_is_right(Sample &sample, scalide_binding *binding) {
    sample.w_scale = 1;
    sample.w = {1, 2, 3, 4};
    const float expected = sample.expected_y(99);
    sample.y[99] = -1;
    return scalide_run(binding) == SCALIDE_OK && sample.y[99] == expected;
}

std::atomic<int> signals_seen{0};

/// While it lives a signal comes to this process every 200 us, whose handler does not let system calls go on.
class Interruptions {
public:
    Interruptions() {
        struct sigaction action = {};
        action.sa_handler = [](int) { ++signals_seen; };
        sigaction(SIGALRM, &action, &before_);
        set(200);
    }
    Interruptions(const Interruptions &) = delete;
    Interruptions &operator=(const Interruptions &) = delete;
    ~Interruptions() {
        set(0);
        sigaction(SIGALRM, &before_, nullptr);
    }

private:
    static void set(suseconds_t interval) {
        const itimerval timer = {{0, interval}, {0, interval}};
        setitimer(ITIMER_REAL, &timer, nullptr);
    }
    struct sigaction before_ = {};
};

/// Returns the blocked signals of each other thread of this process, a bit for each, from signal 1.
std::vector<uint64_t> blocked_in_other_threads() {
    std::vector<uint64_t> masks;
    for (const auto &task : std::filesystem::directory_iterator("/proc/self/task")) {
        if (task.path().filename() == std::to_string(gettid())) continue;
        std::ifstream status(task.path() / "status");
        for (std::string word; status >> word;)
            if (word == "SigBlk:" && status >> word) masks.push_back(std::stoull(word, nullptr, 16));
    }
    return masks;
}

} // namespace

TEST(concurrency, threads_leave_signals_to_the_application_but_not_their_own_faults) {
    const size_t before = blocked_in_other_threads().size(); // threads of a sanitizer
    const Context context(3);
    const auto leaves_signals = [](uint64_t mask) {
        const auto is_blocked = [&](int number) { return (mask >> (number - 1) & 1) != 0; };
        return is_blocked(SIGALRM) && is_blocked(SIGTERM) && !is_blocked(SIGSEGV) && !is_blocked(SIGILL) && !is_blocked(SIGFPE);
    };
    for (;;) { // a new thread blocks all signals until it has its own mask
        const std::vector<uint64_t> masks = blocked_in_other_threads();
        ASSERT_EQ(masks.size(), before + 2);
        if (std::count_if(masks.begin(), masks.end(), leaves_signals) >= 2) break;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

TEST(concurrency, contexts_of_64_threads_share_a_library) {
    constexpr int threads = 64, runs = 10'000 / threads + 1;
    std::vector<std::thread> users;
    std::atomic<int> good{0};
    for (int i = 0; i < threads; ++i) users.emplace_back([&good, i] { good += load_and_run(i, runs); });
    for (std::thread &user : users) user.join();
    EXPECT_EQ(good, threads);
}

TEST(concurrency, a_forked_process_runs_and_destroys_its_copies) {
    Context context(3);
    Sample sample(100);
    scalide_binding *binding = nullptr;
    ASSERT_EQ(bind(context, sample_program(), sample, &binding), SCALIDE_OK);
    ASSERT_TRUE(run_is_right(sample, binding));
    EXPECT_EQ(in_fork([&] {
                  for (int run = 0; run < 20; ++run) {
                      if (!run_is_right(sample, binding)) return 1;
                  }
                  scalide_binding *another = nullptr;
                  if (bind(context, sample_program(), sample, &another) != SCALIDE_OK || !run_is_right(sample, another)) return 2;
                  scalide_binding_destroy(another);
                  scalide_binding_destroy(binding);
                  scalide_context_destroy(context.handle);
                  return 0;
              }),
              0);
    EXPECT_TRUE(run_is_right(sample, binding)) << "of the parent";
    scalide_binding_destroy(binding);
}

TEST(concurrency, signals_disturb_nothing) {
    Context context(2);
    Sample sample(1024);
    scalide_binding *binding = nullptr;
    ASSERT_EQ(bind(context, sample_program(), sample, &binding), SCALIDE_OK);
    const Folder folder;
    const scalide_tensor tensors[] = {{"x", sample.arrays[0]}};
    const scalide_safetensors_content content = {tensors, 1, nullptr, 0};
    const Interruptions interruptions;
    char message[500] = "";
    for (int i = 0; i < 10 || signals_seen < 100; ++i) {
        ASSERT_TRUE(run_is_right(sample, binding));
        ASSERT_EQ(scalide_safetensors_write(folder.file("x").c_str(), &content, message, sizeof(message)), SCALIDE_OK) << message;
        scalide_safetensors *file = nullptr;
        ASSERT_EQ(scalide_safetensors_read(folder.file("x").c_str(), &file, message, sizeof(message)), SCALIDE_OK) << message;
        EXPECT_EQ(std::memcmp(scalide_safetensors_tensor(file, 0)->array.data, sample.x.data(), 4 * sample.x.size()), 0);
        scalide_safetensors_close(file);
    }
    scalide_binding_destroy(binding);
}
