// Metrics: lines and events, repairs of old files, several threads, other processes.
#include "fixture.h"
#include "metrics_files.h"
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstring>
#include <ctime>
#include <limits>
#include <random>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace scalide::test;
using scalide::runtime::Metrics;

TEST(metrics, lines_have_step_time_and_numbers) {
    const Folder folder;
    Metrics metrics(folder.path.string());
    metrics.write(0, {{"loss", 0.5}, {"gr\xc3\xb6\xc3\x9f\"e\"\n", -3}});
    metrics.write(-7, {});
    metrics.close();
    const std::string text = lines_of(folder);
    EXPECT_EQ(untimed(text),
              (std::vector<std::string>{"{\"step\": 0, \"loss\": 0.5, \"gr\xc3\xb6\xc3\x9f\\\"e\\\"\\u000a\": -3.0}", "{\"step\": -7, }"}));
    const double time = std::strtod(text.c_str() + text.find("\"time\": ") + 8, nullptr);
    EXPECT_NEAR(time, static_cast<double>(std::time(nullptr)), 3600);
}

TEST(metrics, numbers_read_back_as_they_are) {
    using limits = std::numeric_limits<double>;
    std::vector<double> values = {0.1,       1.0 / 3, 0.1f, 1e300, -0.0, 5e-324, limits::max(), limits::min(), 1 + limits::epsilon(),
                                  123456789, 1e22,    1e-5};
    std::mt19937_64 random(1);
    while (values.size() < 2000) {
        const uint64_t bits = random();
        double value;
        std::memcpy(&value, &bits, sizeof(value));
        if (std::isfinite(value)) values.push_back(value);
    }
    const Folder folder;
    Metrics metrics(folder.path.string());
    for (const double value : values) metrics.write(0, {{"x", value}});
    metrics.close();
    const std::vector<std::string> lines = untimed(lines_of(folder));
    ASSERT_EQ(lines.size(), values.size());
    for (size_t i = 0; i < lines.size(); ++i) {
        const std::string number = lines[i].substr(17);
        const double read = std::strtod(number.c_str(), nullptr);
        EXPECT_EQ(std::memcmp(&read, &values[i], sizeof(read)), 0) << number;
        EXPECT_NE(number.find_first_of(".e"), std::string::npos) << "JSON readers would give an integer: " << number;
    }
    EXPECT_EQ(lines[0], "{\"step\": 0, \"x\": 0.1}");
}

TEST(metrics, numbers_that_are_not_finite_are_strings) {
    const Folder folder;
    Metrics metrics(folder.path.string());
    metrics.write(0, {{"a", NAN}, {"b", INFINITY}, {"c", -INFINITY}, {"d", -NAN}});
    metrics.close();
    EXPECT_EQ(untimed(lines_of(folder))[0], R"({"step": 0, "a": "nan", "b": "inf", "c": "-inf", "d": "nan"})");
}

TEST(metrics, events_have_checksums_and_scalars) {
    const Folder folder;
    Metrics metrics(folder.path.string(), true);
    metrics.write(300, {{"loss", 0.5}, {"rate", 1e-3}});
    metrics.write(-1, {{"x", INFINITY}});
    metrics.close();
    const std::vector<std::string> found = records(content(event_file(folder)));
    ASSERT_EQ(found.size(), 3u);
    EXPECT_EQ(found[0].substr(9), "\x1a\x0d"
                                  "brain.Event:2");
    double time;
    std::memcpy(&time, found[0].data() + 1, sizeof(time));
    EXPECT_NEAR(time, static_cast<double>(std::time(nullptr)), 3600);
    const auto text = [](const char *bytes, size_t size) { return std::string(bytes, size); };
    // step 300; a summary of 26 bytes: {tag "loss", 0.5}, {tag "rate", 0.001}
    EXPECT_EQ(found[1].substr(9), text("\x10\xac\x02\x2a\x1a"
                                       "\x0a\x0b\x0a\x04loss\x15\0\0\0\x3f"
                                       "\x0a\x0b\x0a\x04rate\x15\x6f\x12\x83\x3a",
                                       31));
    EXPECT_EQ(found[2].substr(9), text("\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x2a\x0a"
                                       "\x0a\x08\x0a\x01x\x15\0\0\x80\x7f",
                                       23));
}

TEST(metrics, a_long_name_needs_a_longer_length) {
    const Folder folder;
    const std::string name(300, 'n');
    Metrics metrics(folder.path.string(), true);
    metrics.write(1, {{name, 1}});
    metrics.close();
    const std::vector<std::string> found = records(content(event_file(folder)));
    ASSERT_EQ(found.size(), 2u);
    EXPECT_NE(found[1].find("\x0a\xac\x02" + name), std::string::npos);
}

TEST(metrics, an_old_file_is_continued) {
    const Folder folder;
    for (int run = 0; run < 3; ++run) {
        Metrics metrics(folder.path.string());
        metrics.write(run, {{"x", 1}});
    }
    EXPECT_EQ(untimed(lines_of(folder)).size(), 3u);
}

TEST(metrics, a_torn_last_line_is_removed) {
    const std::string whole = "{\"step\": 0, \"a}\": 1.0}\n", long_name(10000, '}');
    for (const std::string &torn : {std::string("{"), std::string("{\"step\": 1, \"a}"), std::string("{\"step\": 1, \"a\\\"}"),
                                    "{\"" + long_name, std::string(1, '\0')}) {
        const Folder folder;
        put(folder, whole + torn);
        Metrics(folder.path.string()).write(2, {});
        EXPECT_EQ(untimed(lines_of(folder)), (std::vector<std::string>{whole.substr(0, whole.size() - 1), "{\"step\": 2, }"}));
    }
    const Folder folder; // a file that has no whole line
    put(folder, "{\"st");
    Metrics(folder.path.string()).write(2, {});
    EXPECT_EQ(untimed(lines_of(folder)).size(), 1u);
}

TEST(metrics, a_complete_last_line_without_a_newline_stays) {
    const std::string long_name(10000, 'x');
    for (const std::string &line : {std::string("{\"step\": 0, \"a\\\\\": 1.0}"), "{\"step\": 0, \"" + long_name + "\": 1.0}"}) {
        const Folder folder;
        put(folder, line);
        Metrics(folder.path.string()).write(2, {});
        EXPECT_EQ(untimed(lines_of(folder)), (std::vector<std::string>{line, "{\"step\": 2, }"}));
    }
}

TEST(metrics, two_writers_of_a_folder_are_an_error) {
    const Folder folder;
    Metrics first(folder.path.string());
    EXPECT_EQ(message_of([&] { Metrics(folder.path.string()); }),
              folder.file("metrics.jsonl") +
                  ": cannot write this file: other metrics are open in the folder. Close them, or choose another folder.");
    first.write(1, {});
    first.close();
    Metrics second(folder.path.string());
    second.write(2, {});
    second.close();
    EXPECT_EQ(untimed(lines_of(folder)).size(), 2u);
}

TEST(metrics, folders_that_cannot_be_written) {
    const Folder folder;
    std::ofstream(folder.file("file")) << "text";
    EXPECT_EQ(message_of([&] { Metrics(folder.file("file/runs")); }),
              folder.file("file/runs") + ": cannot create this folder: Not a directory. Choose another folder.");
    EXPECT_EQ(message_of([&] { Metrics metrics(""); }), ": the name of the folder must not be empty. Name a folder.");
    EXPECT_EQ(message_of([&] { Metrics(folder.file("x"), false, 100); }),
              folder.file("x") + ": queue_bytes must be from 256 to 2^40, or 0. Choose such a number.");
    mkfifo(folder.file("metrics.jsonl").c_str(), 0600);
    EXPECT_NE(message_of([&] { Metrics(folder.path.string()); }).find("cannot repair the last line"), std::string::npos);
    Metrics nested(folder.file("a/b//c/"));
    nested.write(1, {});
    nested.close();
    EXPECT_EQ(untimed(content(folder.file("a/b/c/metrics.jsonl"))).size(), 1u);
}

TEST(metrics, wrong_names_and_long_lines) {
    const Folder folder;
    Metrics metrics(folder.path.string(), false, 256);
    EXPECT_EQ(message_of([&] { metrics.write(0, {{"step", 1}}); }), "metric 'step' is a name of each line. Rename the metric.");
    EXPECT_EQ(message_of([&] { metrics.write(0, {{"a", 1}, {"b", 1}, {"a", 2}}); }), "metric 'a' occurs twice. Rename one of the metrics.");
    for (const char *name : {"", "\xff"})
        EXPECT_NE(message_of([&] {
                      metrics.write(0, {{name, 1}});
                  }).find("must be UTF-8 text with at least one character. Rename the metric."),
                  std::string::npos);
    EXPECT_NE(message_of([&] {
                  metrics.write(0, {{std::string(300, 'x'), 1}});
              }).find("a line must have at most 255 bytes, got 3"),
              std::string::npos);
    metrics.close();
    EXPECT_EQ(lines_of(folder), "");
}

TEST(metrics, null_and_wrong_options) {
    const Folder folder;
    char message[200] = "";
    scalide_metrics *metrics = nullptr;
    EXPECT_EQ(scalide_metrics_open(nullptr, nullptr, &metrics, message, sizeof(message)), SCALIDE_INVALID_ARGUMENT);
    EXPECT_STREQ(message, "folder must not be NULL.");
    EXPECT_EQ(scalide_metrics_open("x", nullptr, nullptr, message, sizeof(message)), SCALIDE_INVALID_ARGUMENT);
    EXPECT_STREQ(message, "metrics must not be NULL.");
    const scalide_metrics_options options = {};
    EXPECT_EQ(scalide_metrics_open(folder.file("x").c_str(), &options, &metrics, message, sizeof(message)), SCALIDE_INVALID_ARGUMENT);
    EXPECT_EQ(message, folder.file("x") + ": struct_size must be sizeof(scalide_metrics_options). Set it.");
    EXPECT_EQ(scalide_metrics_write(nullptr, 0, nullptr, 0, message, sizeof(message)), SCALIDE_INVALID_ARGUMENT);
    EXPECT_STREQ(message, "scalide_metrics_write: metrics must not be NULL.");
    EXPECT_EQ(scalide_metrics_flush(nullptr, nullptr, 0), SCALIDE_INVALID_ARGUMENT);
    EXPECT_EQ(scalide_metrics_dropped(nullptr), 0u);
    EXPECT_EQ(scalide_metrics_close(nullptr, nullptr, 0), SCALIDE_OK);
    ASSERT_EQ(scalide_metrics_open(folder.file("x").c_str(), nullptr, &metrics, nullptr, 0), SCALIDE_OK);
    EXPECT_EQ(scalide_metrics_write(metrics, 0, nullptr, 1, message, sizeof(message)), SCALIDE_INVALID_ARGUMENT);
    EXPECT_STREQ(message, "values must not be NULL.");
    EXPECT_EQ(scalide_metrics_close(metrics, nullptr, 0), SCALIDE_OK);
}

TEST(metrics, several_threads_write) {
    const Folder folder;
    Metrics metrics(folder.path.string(), true);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&, t] {
            for (int i = 0; i < 500; ++i) metrics.write(t, {{"i", i}});
        });
    }
    for (std::thread &thread : threads) thread.join();
    metrics.close();
    std::vector<int> next(4);
    for (const std::string &line : untimed(lines_of(folder))) {
        int thread = 0, i = 0;
        ASSERT_EQ(std::sscanf(line.c_str(), "{\"step\": %d, \"i\": %d.0}", &thread, &i), 2) << line;
        EXPECT_EQ(next[static_cast<size_t>(thread)]++, i); // each thread in its order
    }
    EXPECT_EQ(next, std::vector<int>(4, 500));
    EXPECT_EQ(records(content(event_file(folder))).size(), 2001u);
}

TEST(metrics, a_forked_process_is_told) {
    const Folder folder;
    Metrics metrics(folder.path.string());
    const pid_t child = fork();
    if (child == 0) {
        const std::string message = message_of([&] { metrics.write(1, {}); });
        _exit(message.find("the process was forked after scalide_metrics_open") == std::string::npos);
    }
    int status = 1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    metrics.write(2, {});
    metrics.close();
    EXPECT_EQ(untimed(lines_of(folder)).size(), 1u);
}

TEST(metrics, a_killed_process_leaves_whole_lines) {
    const Folder folder;
    const std::string file = folder.file("metrics.jsonl");
    std::mt19937 random(3);
    for (int kill_number = 0; kill_number < 30; ++kill_number) {
        // Bytes of some 100 further lines, and no time: how long the process takes for them depends on the machine.
        const size_t least = lines_of(folder).size() + 5000 + random() % 5000;
        const pid_t child = fork();
        if (child == 0) {
            Metrics metrics(folder.path.string());
            for (int64_t step = 0;; ++step) {
                message_of([&] { metrics.write(step, {{"loss", 0.5}}); });
                std::this_thread::sleep_for(std::chrono::microseconds(1)); // so that the thread that writes gets the lock
            }
        }
        const auto size = [&] { return std::filesystem::exists(file) ? std::filesystem::file_size(file) : 0; };
        while (waitpid(child, nullptr, WNOHANG) == 0 && size() < least) std::this_thread::sleep_for(std::chrono::microseconds(100));
        kill(child, SIGKILL);
        waitpid(child, nullptr, 0);
        std::vector<std::string> lines = untimed(lines_of(folder));
        ASSERT_GT(lines.size(), 50u * static_cast<size_t>(kill_number + 1));
        lines.pop_back(); // may be torn
        for (const std::string &line : lines) ASSERT_TRUE(line.size() > 13 && line.substr(line.size() - 12) == "\"loss\": 0.5}") << line;
    }
}
