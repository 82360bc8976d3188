// groups.hpp, compiled as C++17 without warnings.
#include "group_programs.h"
#include "scalide/groups.hpp"
#include <gtest/gtest.h>
#include <thread>

namespace {

using namespace scalide::runtime;
using scalide::test::SumArrays;
using scalide::test::SumProgram;

/// Sums arrays in this context, once. Returns the message of the error, if there is one.
std::string sum(const Context &context, int32_t ranks, int32_t rank) {
    const SumProgram net;
    SumArrays arrays(9, 3, rank);
    scalide_binding *binding = nullptr;
    std::string message;
    try {
        context.check(scalide_bind(context.handle(), net.program, arrays.arrays().data(), 4, &binding));
        context.check(scalide_run(binding));
        EXPECT_EQ(arrays.wrong(ranks), 0);
    } catch (const Error &error) {
        message = error.what();
    }
    scalide_binding_destroy(binding);
    return message;
}

/// Both ranks of a group have the same data. What it has done outlives it.
class Mirror : public Transport {
public:
    explicit Mirror(std::string &events, bool fails = false) : events_(events), fails_(fails) {}
    ~Mirror() override { events_ += "end"; }
    int32_t ranks() const noexcept override { return 2; }
    int32_t rank() const noexcept override { return 1; }
    void all_gather(const void *sent, void *received, size_t bytes) override { copy(sent, received, bytes); }
    void all_to_all(const void *sent, void *received, size_t bytes) override {
        if (fails_) throw std::runtime_error("the network is down");
        copy(sent, received, bytes);
    }
    void abort(const char *why) noexcept override { events_ += std::string(why) + "; "; }

private:
    static void copy(const void *sent, void *received, size_t bytes) {
        std::memcpy(received, sent, bytes);
        std::memcpy(static_cast<char *>(received) + bytes, sent, bytes);
    }
    std::string &events_;
    bool fails_;
};

TEST(cpp_groups, joins_threads) {
    ThreadGroup made(2, 60);
    const ThreadGroup group = std::move(made);
    const auto run = [&](int32_t number) {
        const Context context(1);
        group.join(context, "data", number);
        EXPECT_EQ(ranks(context, "data"), 2);
        EXPECT_EQ(rank(context, "data"), number);
        EXPECT_EQ(sum(context, 2, number), "");
    };
    std::thread other(run, 1);
    run(0);
    other.join();
    EXPECT_THROW(ThreadGroup(0), Error);
    EXPECT_THROW(group.join(Context(1), "data", 0), Error) << "the rank has joined";
    EXPECT_THROW(made.join(Context(1), "data", 0), Error) << "it is empty";
}

TEST(cpp_groups, joins_alone) {
    const Context context(1);
    EXPECT_EQ(ranks(context, "data"), -1);
    join_alone(context, "data");
    EXPECT_EQ(rank(context, "data"), 0);
    EXPECT_EQ(sum(context, 1, 0), "");
    EXPECT_THROW(join_alone(context, "data"), Error);
    EXPECT_THROW(join_mpi(context, "data"), Error);
}

TEST(cpp_groups, joins_with_a_transport_of_the_application) {
    std::string events;
    {
        const Context context(1);
        join(context, "data", std::make_unique<Mirror>(events, true));
        EXPECT_EQ(events, "");
        EXPECT_THROW(join(context, "data", std::make_unique<Mirror>(events)), Error);
        EXPECT_EQ(events, "end") << "the context has not taken the second one";
        EXPECT_THROW(join(context, "more", nullptr), Error);
        EXPECT_EQ(sum(context, 2, 1), "net.exchange: group data: the network is down.");
    }
    EXPECT_EQ(events, "endnet.exchange: group data: the network is down.; end");
}

/// A program without steps, whose state is w: f32[n, 3], s: f16[n] scaled, c: f32[2].
const scalide_program *stateful() {
    static const scalide_symbol symbols[] = {{"n", 1, 100, 1, SCALIDE_FROM_ARGUMENTS, -1, nullptr}};
    static const scalide_term n[] = {{1, {0, -1, -1, -1}}}, three[] = {{3, {-1, -1, -1, -1}}}, two[] = {{2, {-1, -1, -1, -1}}};
    static const scalide_extent rows[] = {{n, 1}, {three, 1}}, short_shape[] = {{two, 1}};
    static const scalide_buffer buffers[] = {{"w", SCALIDE_F32, 2, rows, SCALIDE_STORAGE_DATA, 0, -1, -1, 0, nullptr, nullptr},
                                             {"s", SCALIDE_F16, 1, rows, SCALIDE_STORAGE_DATA, 1, -1, -1, SCALIDE_DATA, "s", nullptr},
                                             {"t", SCALIDE_F32, 0, nullptr, SCALIDE_STORAGE_SCALE, 1, -1, -1, SCALIDE_SCALE, "s", nullptr},
                                             {"c", SCALIDE_F32, 1, short_shape, SCALIDE_STORAGE_DATA, 2, -1, -1, 0, nullptr, nullptr}};
    static const scalide_argument arguments[] = {
        {"w", SCALIDE_INOUT, 0, -1, 0}, {"s", SCALIDE_INOUT, 1, 2, 0}, {"c", SCALIDE_INOUT, 3, -1, 0}};
    static scalide_program program = {};
    program.plan_version = SCALIDE_PLAN_VERSION;
    program.name = "net";
    program.target = "x86-64-linux";
    program.numerics = "f16_scaled";
    program.hash = "0";
    program.symbol_count = 1;
    program.argument_count = 3;
    program.buffer_count = 4;
    program.symbols = symbols;
    program.arguments = arguments;
    program.buffers = buffers;
    return &program;
}

/// Runs body(context, rank) on ranks that are threads.
template<typename Body>
void on_ranks(int32_t count, Body body) {
    const ThreadGroup group(count, 60);
    std::vector<std::thread> threads;
    for (int32_t number = 0; number < count; ++number)
        threads.emplace_back([&, number] {
            const Context context(1);
            group.join(context, "data", number);
            body(context, number);
        });
    for (std::thread &thread : threads) thread.join();
}

TEST(cpp_groups, divided_state_goes_through_a_file_to_another_number_of_ranks) {
    const std::string file = testing::TempDir() + "divided.safetensors";
    on_ranks(2, [&](const Context &context, int32_t rank) {
        State part(context, stateful(), {{"n", 6}}), whole(context, stateful(), {{"n", 12}});
        std::vector<float> rows(18);
        for (size_t i = 0; i < rows.size(); ++i) rows[i] = 18.0f * static_cast<float>(rank) + static_cast<float>(i);
        part["w"].set(rows);
        part["s"].set(std::vector<float>(6, static_cast<float>(rank + 1)));
        part["c"].set(std::vector<float>{5, 7});
        gather(context, "data", part, whole);
        if (rank == 0) whole.save(file);
    });
    on_ranks(3, [&](const Context &context, int32_t rank) {
        State whole(context, stateful(), {{"n", 12}}), part(context, stateful(), {{"n", 4}});
        whole.load(file);
        divide(context, "data", whole, part);
        const std::vector<float> rows = part["w"].get(), s = part["s"].get();
        for (size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(rows[i], 12.0f * static_cast<float>(rank) + static_cast<float>(i));
        for (size_t i = 0; i < s.size(); ++i) EXPECT_EQ(s[i], 4 * static_cast<size_t>(rank) + i < 6 ? 1 : 2);
        EXPECT_EQ(part["c"].get(), (std::vector<float>{5, 7}));
    });
    std::remove(file.c_str());
}

TEST(cpp_groups, state_that_is_not_divided_evenly_is_refused) {
    on_ranks(2, [](const Context &context, int32_t) {
        State part(context, stateful(), {{"n", 5}}), whole(context, stateful(), {{"n", 12}});
        const auto message = [&](auto call) -> std::string {
            try {
                call();
            } catch (const Error &error) {
                return error.what();
            }
            return "";
        };
        EXPECT_EQ(message([&] { divide(context, "rows", whole, part); }),
                  "the context is no rank of group rows. Join it first, for example by join_mpi.");
        EXPECT_EQ(message([&] { divide(context, "data", whole, part); }),
                  "w: the shape [12, 3] of the whole array must be the shape of the part, [5, 3], or have a first extent that is 2 times "
                  "as large.");
    });
}

TEST(cpp_groups, bytes_of_any_number_are_gathered) {
    on_ranks(3, [](const Context &context, int32_t rank) {
        const std::vector<char> sent(65, static_cast<char>('a' + rank));
        std::vector<char> received(195);
        EXPECT_EQ(scalide_all_gather(context.handle(), "data", sent.data(), received.data(), 65), SCALIDE_OK);
        EXPECT_EQ(std::string(received.begin(), received.end()), std::string(65, 'a') + std::string(65, 'b') + std::string(65, 'c'));
        EXPECT_EQ(scalide_all_gather(context.handle(), "data", nullptr, nullptr, 0), SCALIDE_OK);
        EXPECT_EQ(scalide_all_gather(context.handle(), "data", nullptr, nullptr, 1), SCALIDE_INVALID_ARGUMENT);
        EXPECT_EQ(scalide_all_gather(context.handle(), "rows", sent.data(), received.data(), 65), SCALIDE_INVALID_ARGUMENT);
        EXPECT_STREQ(scalide_message(context.handle()), "scalide_all_gather: group rows: this context is no rank of the group. Join it "
                                                        "first, for example by scalide_join_mpi.");
    });
}

} // namespace
