// Metrics on slow and full disks, after failing file operations, and with another decimal sign.
#include "file_faults.h"
#include "fixture.h"
#include "metrics_files.h"
#include <cerrno>
#include <condition_variable>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <mutex>

using namespace scalide::test;
using scalide::runtime::Error;
using scalide::runtime::Metrics;

namespace {

bool has_other_decimal_sign = false;

}

// A host may have a locale with another decimal sign, also one of several bytes.
extern "C" int __wrap_snprintf(char *memory, size_t size, const char *format, ...) {
    std::va_list arguments;
    va_start(arguments, format);
    int length = std::vsnprintf(memory, size, format, arguments);
    va_end(arguments);
    char *point = has_other_decimal_sign ? std::strchr(memory, '.') : nullptr;
    if (!point) return length;
    const std::string rest = point + 1;
    length +=
        std::snprintf(point, size - static_cast<size_t>(point - memory), "\xd9\xab%s", rest.c_str()) - static_cast<int>(rest.size()) - 1;
    return length;
}

namespace {

/// Lets writes wait until `open`.
struct Gate {
    std::mutex mutex;
    std::condition_variable changed;
    bool is_open = false, has_arrived = false;

    Gate() {
        before_write = [this] {
            std::unique_lock lock(mutex);
            has_arrived = true;
            changed.notify_all();
            changed.wait(lock, [this] { return is_open; });
        };
    }
    Gate(const Gate &) = delete;
    Gate &operator=(const Gate &) = delete;
    ~Gate() { open(); }
    void await_writer() {
        std::unique_lock lock(mutex);
        changed.wait(lock, [this] { return has_arrived; });
    }
    void open() {
        const std::lock_guard lock(mutex);
        is_open = true;
        changed.notify_all();
    }
};

/// Removes the gate when its writer has ended.
struct WithoutGate {
    WithoutGate() = default;
    WithoutGate(const WithoutGate &) = delete;
    WithoutGate &operator=(const WithoutGate &) = delete;
    ~WithoutGate() { before_write = nullptr; }
};

/// Opens old metrics, writes two lines and closes. Returns the last message.
std::string write_two_lines(const Folder &folder) {
    std::string message;
    const auto keep = [&](const std::function<void()> &call) {
        const std::string found = message_of(call);
        if (!found.empty()) message = found;
    };
    try {
        Metrics metrics(folder.path.string(), true);
        keep([&] { metrics.write(1, {}); });
        keep([&] { metrics.flush(); });
        keep([&] { metrics.write(2, {}); });
        keep([&] { metrics.close(); });
    } catch (const Error &error) {
        EXPECT_EQ(error.status(), SCALIDE_FILE_ERROR);
        return std::string("not opened: ") + error.what();
    }
    const std::string text = lines_of(folder);
    EXPECT_EQ(text.back(), '\n') << "a part of a line stays";
    EXPECT_GE(untimed(text).size(), message.find("1 line is lost") == std::string::npos ? 3u : 2u) << message;
    return message;
}

} // namespace

TEST(metrics, numbers_have_a_point_in_each_locale) {
    const Folder folder;
    Metrics metrics(folder.path.string());
    has_other_decimal_sign = true;
    metrics.write(0, {{"x", 0.5}, {"y", -0.25}});
    has_other_decimal_sign = false;
    metrics.close();
    EXPECT_EQ(untimed(lines_of(folder))[0], R"({"step": 0, "x": 0.5, "y": -0.25})");
}

TEST(metrics, a_write_does_not_wait_for_the_disk) {
    const Folder folder;
    const WithoutGate last;
    Gate gate;
    Metrics metrics(folder.path.string()); // no write: the file is new
    metrics.write(0, {});
    gate.await_writer();
    for (int step = 1; step < 1000; ++step) metrics.write(step, {{"x", 1}}); // would wait for ever
    EXPECT_EQ(lines_of(folder), "");
    gate.open();
    metrics.close();
    EXPECT_EQ(untimed(lines_of(folder)).size(), 1000u);
}

TEST(metrics, a_full_queue_drops_and_counts_lines) {
    const Folder folder;
    const WithoutGate last;
    Gate gate;
    Metrics metrics(folder.path.string(), false, 4096);
    metrics.write(0, {});
    gate.await_writer();
    int reported = 0;
    std::string message;
    for (int step = 1; step < 1000; ++step) {
        const std::string found = message_of([&] { metrics.write(step, {}); });
        reported += !found.empty();
        if (!found.empty()) message = found;
    }
    EXPECT_EQ(message,
              folder.file("metrics.jsonl") + ": 1 line was dropped, because the queue was full. Write fewer lines, or raise queue_bytes.");
    EXPECT_GT(reported, 800);
    EXPECT_EQ(metrics.dropped(), static_cast<uint64_t>(reported));
    gate.open();
    metrics.close(); // all drops were reported
    EXPECT_EQ(untimed(lines_of(folder)).size() + static_cast<size_t>(reported), 1000u);
}

TEST(metrics, a_full_disk_is_reported_and_nothing_is_lost_if_space_comes_back) {
    for (const bool tensorboard : {false, true}) {
        const Folder folder;
        Metrics metrics(folder.path.string(), tensorboard);
        metrics.write(0, {});
        metrics.flush();
        free_bytes = 100; // a line and a part
        const std::string message = message_of([&] {
            for (int step = 1; step < 50; ++step) metrics.write(step, {{"x", 1}});
            metrics.flush();
        });
        EXPECT_NE(message.find(": cannot write this file: No space left on device. Free space on the disk, or choose another folder."),
                  std::string::npos)
            << message;
        const std::string text = lines_of(folder);
        EXPECT_EQ(text.back(), '\n') << "a part of a line stays";
        if (tensorboard) records(content(event_file(folder)));
        free_bytes = -1;
        const std::vector<std::string> before = untimed(lines_of(folder));
        message_of([&] { metrics.write(50, {}); }); // the thread has perhaps met the full disk once more
        metrics.close();
        const std::vector<std::string> lines = untimed(lines_of(folder));
        ASSERT_GE(lines.size(), before.size() + 2);
        for (size_t i = 0; i < lines.size(); ++i)
            EXPECT_EQ(lines[i].find("{\"step\": " + std::to_string(i == lines.size() - 1 ? 50 : i) + ","), 0u) << lines[i];
        if (tensorboard) EXPECT_EQ(records(content(event_file(folder))).size(), lines.size() + 1);
    }
}

TEST(metrics, close_says_how_many_lines_are_lost) {
    const Folder folder;
    Metrics metrics(folder.path.string());
    free_bytes = 0;
    for (int step = 0; step < 3; ++step) message_of([&] { metrics.write(step, {}); });
    EXPECT_EQ(message_of([&] { metrics.close(); }), folder.file("metrics.jsonl") +
                                                        ": cannot write this file: No space left on device. 3 lines are lost. "
                                                        "Free space on the disk, or choose another folder.");
    free_bytes = -1;
    EXPECT_EQ(lines_of(folder), "");
}

TEST(metrics, each_failing_file_operation_is_reported_and_leaves_whole_lines) {
    for (const int error : {EIO, EINTR}) {
        operation_error = error;
        int reported = 0, i = 0;
        for (bool was_reached = true; was_reached; ++i) {
            SCOPED_TRACE("operation " + std::to_string(i));
            const Folder folder;
            put(folder, "{\"step\": 0, }\n{\"st");
            operations = 0;
            operation_to_fail = i;
            reported += !write_two_lines(folder).empty();
            was_reached = operations > i;
            operation_to_fail = -1;
        }
        EXPECT_GE(i, 12); // open, size, two reads; open, write; twice write and flush for each file; close
        if (error == EIO) EXPECT_GE(reported, 10);
        if (error == EINTR) EXPECT_EQ(reported, 0);
    }
    operation_error = EIO;
}
