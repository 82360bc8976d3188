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

} // namespace
