#pragma once
#include "fixture.h"
#include "scalide/groups.h"
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

/// Ranks that are threads of the test, and a transport of the test.
namespace scalide::test {

/// A group of threads, destroyed at the end of the test. Its limit is less than the time that a test may take.
struct ThreadGroups {
    scalide_thread_group *handle = nullptr;

    explicit ThreadGroups(int32_t ranks, double limit_seconds = 60) {
        char message[256] = "";
        EXPECT_EQ(scalide_thread_group_create(ranks, limit_seconds, &handle, message, sizeof(message)), SCALIDE_OK) << message;
    }
    ThreadGroups(const ThreadGroups &) = delete;
    ThreadGroups &operator=(const ThreadGroups &) = delete;
    ~ThreadGroups() { scalide_thread_group_destroy(handle); }
};

/// A rank on a thread of its own.
struct Rank {
    int32_t number, ranks;
    scalide_thread_group *threads;
    Context context{1};

    Rank(int32_t number, int32_t ranks, scalide_thread_group *threads) : number(number), ranks(ranks), threads(threads) {}
    void join(const char *group) { EXPECT_EQ(scalide_join_threads(context.handle, group, threads, number), SCALIDE_OK) << message(); }
    scalide_status bind(const scalide_program *program, const std::vector<scalide_array> &arrays, Bound &bound) const {
        return scalide_bind(context.handle, program, arrays.data(), arrays.size(), &bound.handle);
    }
    const char *message() const { return scalide_message(context.handle); }
};

/// Calls body(rank) on a thread for each rank, and waits for all.
template<typename Body>
void run_ranks(int32_t ranks, Body body, double limit_seconds = 60) {
    const ThreadGroups group(ranks, limit_seconds);
    std::vector<std::thread> threads;
    for (int32_t i = 0; i < ranks; ++i)
        threads.emplace_back([&, i] {
            Rank rank(i, ranks, group.handle);
            body(rank);
        });
    for (std::thread &thread : threads) thread.join();
}

/// Calls body(rank, row, column) on a thread for each rank of a grid of 2 x 2: ranks 0 and 1 are the first row. Each rank has joined the
/// group `rows`, in which the rows of its column meet, and `columns`.
template<typename Body>
void run_grid(Body body) {
    const ThreadGroups rows[] = {ThreadGroups(2), ThreadGroups(2)}, columns[] = {ThreadGroups(2), ThreadGroups(2)};
    run_ranks(4, [&](Rank &rank) {
        const int32_t row = rank.number / 2, column = rank.number % 2;
        ASSERT_EQ(scalide_join_threads(rank.context.handle, "rows", rows[column].handle, row), SCALIDE_OK) << rank.message();
        ASSERT_EQ(scalide_join_threads(rank.context.handle, "columns", columns[row].handle, column), SCALIDE_OK) << rank.message();
        body(rank, row, column);
    });
}

/// An engine of the application, with one rank of two. Both ranks have the same data.
struct Echo {
    int32_t calls = 0, aborts = 0, closes = 0;
    const char *failure = nullptr;
    std::string why;

    scalide_transport table() {
        scalide_transport table = {};
        table.struct_size = sizeof(table);
        table.ranks = 2;
        table.self = this;
        table.all_gather = [](void *self, const void *send, void *receive, size_t bytes, char *message, size_t message_size) {
            std::memcpy(receive, send, bytes);
            std::memcpy(static_cast<char *>(receive) + bytes, send, bytes);
            return static_cast<Echo *>(self)->end(bytes, message, message_size);
        };
        table.all_to_all = [](void *self, const void *send, void *receive, size_t bytes, char *message, size_t message_size) {
            std::memcpy(receive, send, bytes);
            std::memcpy(static_cast<char *>(receive) + bytes, send, bytes);
            return static_cast<Echo *>(self)->end(bytes, message, message_size);
        };
        table.abort = [](void *self, const char *text) {
            ++static_cast<Echo *>(self)->aborts;
            static_cast<Echo *>(self)->why = text;
        };
        table.close = [](void *self) { ++static_cast<Echo *>(self)->closes; };
        return table;
    }

private:
    int end(size_t bytes, char *message, size_t message_size) {
        ++calls;
        EXPECT_EQ(bytes % 64, 0u);
        EXPECT_GT(bytes, 0u);
        if (failure) std::snprintf(message, message_size, "%s", failure);
        return failure ? 1 : 0;
    }
};

} // namespace scalide::test
