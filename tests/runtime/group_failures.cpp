#include "fixture.h"
#include "group_programs.h"
#include "group_threads.h"
#include <cmath>
#include <cstring>
#include <functional>
#include <string>

using namespace scalide::test;

namespace {

/// The message of a run that must fail with this status, of a net whose arrays have n and m elements.
std::string failed_run(Rank &rank, const scalide_program *program, int64_t n, int64_t m, scalide_status status) {
    SumArrays arrays(n, m, rank.number);
    Bound bound;
    EXPECT_EQ(rank.bind(program, arrays.arrays(), bound), SCALIDE_OK) << rank.message();
    if (!bound.handle) return rank.message();
    EXPECT_EQ(scalide_run(bound.handle), status) << rank.message();
    const std::string message = rank.message();
    EXPECT_EQ(scalide_run(bound.handle), status);
    EXPECT_NE(std::string(rank.message()).find("an earlier run of this binding failed"), std::string::npos) << rank.message();
    return message;
}

/// Runs 3 ranks, of which `change` changes the last one, and expects this message on all.
void expect_difference(const std::function<void(scalide_program &)> &change, int64_t n_of_last, const std::string &message) {
    run_ranks(3, [&](Rank &rank) {
        rank.join("data");
        const SumProgram net;
        scalide_program program = *net.program;
        if (rank.number == 2) change(program);
        const std::string name = program.name;
        const int64_t n = rank.number == 2 ? n_of_last : 7;
        const std::string expected = rank.number == 2 ? name + message.substr(3) : message;
        EXPECT_EQ(failed_run(rank, &program, n, 2, SCALIDE_INVALID_ARGUMENT), expected);
    });
}

} // namespace

TEST(runtime, compares_the_programs_of_the_ranks) {
    expect_difference([](scalide_program &program) { program.name = "other"; }, 7,
                      "net: group data: rank 2 runs the program other, but rank 0 runs net. Run the same program on all ranks.");
    expect_difference([](scalide_program &program) { program.numerics = "f16"; }, 7,
                      "net: group data: rank 2 runs the program with policy f16, but rank 0 runs it with policy 0. Run the same library on "
                      "all ranks.");
    expect_difference([](scalide_program &program) { program.hash = "77"; }, 7,
                      "net: group data: rank 2 has a library that was built from another text or by another version than the library of "
                      "rank 0 (hash 77, not 0). Run the same library on all ranks.");
}

TEST(runtime, compares_the_arrays_of_the_ranks) {
    expect_difference([](scalide_program &) {}, 128,
                      "net.exchange: group data: rank 2 exchanges 128 f32 elements in chunks of 172 bytes, but rank 0 exchanges 7 f32 "
                      "elements in chunks of 12 bytes. Bind arrays of equal shapes on all ranks.");
}

TEST(runtime, ends_the_runs_of_the_other_ranks_when_a_kernel_fails) {
    for (const int32_t failing : {0, 2})
        run_ranks(3, [=](Rank &rank) {
            rank.join("data");
            const SumProgram net;
            kernel_error = rank.number == failing ? -7 : 0;
            const bool is_failing = rank.number == failing;
            const std::string message = failed_run(rank, net.program, 7, 2, is_failing ? SCALIDE_KERNEL_FAILED : SCALIDE_TRANSPORT_FAILED);
            const std::string number = std::to_string(failing);
            EXPECT_EQ(message, is_failing
                                   ? "net.sum_x: the kernel failed with error -7."
                                   : "net.collect: group data: rank " + number + " has left: net.sum_x: the kernel failed with error -7.");
        });
}

TEST(runtime, ends_the_runs_of_the_other_ranks_when_a_context_is_destroyed) {
    run_ranks(3, [](Rank &rank) {
        rank.join("data");
        if (rank.number == 1) return;
        const SumProgram net;
        EXPECT_EQ(failed_run(rank, net.program, 7, 2, SCALIDE_TRANSPORT_FAILED),
                  "net.exchange: group data: rank 1 has left: its context was destroyed.");
    });
}

TEST(runtime, ends_the_runs_of_the_other_ranks_at_the_limit) {
    run_ranks(
        4,
        [](Rank &rank) {
            if (rank.number == 1 || rank.number == 3) return; // they never join
            rank.join("data");
            const SumProgram net;
            EXPECT_EQ(failed_run(rank, net.program, 7, 2, SCALIDE_TRANSPORT_FAILED),
                      "net.exchange: group data: ranks 1, 3 did not come within 0.25 seconds.");
        },
        0.25);
}

TEST(runtime, ends_the_runs_of_the_other_ranks_after_an_interrupt) {
    run_ranks(2, [](Rank &rank) {
        rank.join("data");
        BlockPlan plan;
        const int64_t data = plan.group("data");
        const int32_t x = plan.argument("x", SCALIDE_INPUT, SCALIDE_F32, {4}),
                      y = plan.argument("y", SCALIDE_OUTPUT, SCALIDE_F32, {data, 4});
        plan.collective("collect", SCALIDE_COLLECT, data, {{x, y}});
        plan.block("loop", SCALIDE_BLOCK_LOOP, -1, 0, 1, 3);
        Elements<float> from(SCALIDE_F32, {4}), to(SCALIDE_F32, {2, 4});
        Bound bound;
        ASSERT_EQ(rank.bind(plan.finish(), {from.array, to.array}, bound), SCALIDE_OK) << rank.message();
        ASSERT_EQ(scalide_run(bound.handle), SCALIDE_OK) << rank.message();
        if (rank.number == 0) scalide_interrupt(rank.context.handle);
        EXPECT_EQ(scalide_run(bound.handle), rank.number == 0 ? SCALIDE_INTERRUPTED : SCALIDE_TRANSPORT_FAILED);
        const std::string message = rank.message();
        if (rank.number == 1)
            EXPECT_EQ(message.rfind("net.collect: in step 0 of loop (net.scl:7): group data: rank 0 has left: net: interrupted", 0), 0u)
                << message;
    });
}

TEST(runtime, ends_the_runs_of_other_groups_when_ranks_differ) {
    run_grid([](Rank &rank, int32_t, int32_t column) {
        const GridProgram net;
        scalide_program program = *net.program;
        program.hash = rank.number == 3 ? "7" : "0";
        Elements<float> x(SCALIDE_F32, {4}), y(SCALIDE_F32, {4});
        Bound bound;
        ASSERT_EQ(rank.bind(&program, {x.array, y.array}, bound), SCALIDE_OK) << rank.message();
        EXPECT_EQ(scalide_run(bound.handle), column == 1 ? SCALIDE_INVALID_ARGUMENT : SCALIDE_TRANSPORT_FAILED) << rank.message();
    });
}

TEST(runtime, refuses_to_bind_without_a_group) {
    const SumProgram net;
    Context context(1);
    SumArrays arrays(4, 4, 0);
    Bound bound;
    EXPECT_EQ(scalide_bind(context.handle, net.program, arrays.arrays().data(), 4, &bound.handle), SCALIDE_INVALID_ARGUMENT);
    EXPECT_STREQ(scalide_message(context.handle), "net: the program exchanges arrays in group data, but the context is no rank of it. Call "
                                                  "scalide_join_mpi, scalide_join_threads, or scalide_join_alone for one rank.");
    ASSERT_EQ(scalide_join_alone(context.handle, "model"), SCALIDE_OK);
    ASSERT_EQ(scalide_join_alone(context.handle, "data"), SCALIDE_OK);
    ASSERT_EQ(scalide_bind(context.handle, net.program, arrays.arrays().data(), 4, &bound.handle), SCALIDE_OK);
    EXPECT_EQ(scalide_run(bound.handle), SCALIDE_OK);
    EXPECT_EQ(arrays.wrong(1), 0);
    EXPECT_EQ(scalide_capture(bound.handle), SCALIDE_UNSUPPORTED);
}

TEST(runtime, refuses_a_number_of_ranks_that_the_program_does_not_allow) {
    run_ranks(3, [](Rank &rank) {
        rank.join("data");
        SumProgram net;
        SumArrays arrays(4, 4, 0);
        Bound bound;
        net.plan.symbols[2].multiple = 2;
        EXPECT_EQ(rank.bind(net.program, arrays.arrays(), bound), SCALIDE_INVALID_ARGUMENT);
        EXPECT_STREQ(rank.message(), "net: group data has 3 ranks, but data must be a multiple of 2 in [1, 65536]. Run the program with "
                                     "another number of ranks.");
        net.plan.symbols[2].multiple = 1;
        net.plan.symbols[3].maximum = 1;
        EXPECT_EQ(rank.bind(net.program, arrays.arrays(), bound), SCALIDE_INVALID_ARGUMENT);
        EXPECT_STREQ(rank.message(),
                     "net: group data gives x.chunk = 2, but x.chunk must be in [0, 1]. Run the program with another number "
                     "of ranks.");
    });
}

TEST(runtime, runs_over_a_transport_of_the_application) {
    Echo echo;
    {
        const SumProgram net;
        Context context(1);
        const scalide_transport table = echo.table();
        ASSERT_EQ(scalide_join(context.handle, "data", &table), SCALIDE_OK) << scalide_message(context.handle);
        SumArrays arrays(8, 2, 0);
        Bound bound;
        ASSERT_EQ(scalide_bind(context.handle, net.program, arrays.arrays().data(), 4, &bound.handle), SCALIDE_OK);
        ASSERT_EQ(scalide_run(bound.handle), SCALIDE_OK) << scalide_message(context.handle);
        EXPECT_EQ(echo.calls, 4) << "two comparisons, an exchange and a collection";
        ASSERT_EQ(scalide_run(bound.handle), SCALIDE_OK);
        EXPECT_EQ(echo.calls, 6);
        EXPECT_EQ(arrays.y[1], 2);
        EXPECT_EQ(arrays.y[5], 2) << "both ranks sum the first chunk";
        echo.failure = "the cable is cut";
        EXPECT_EQ(scalide_run(bound.handle), SCALIDE_TRANSPORT_FAILED);
        EXPECT_STREQ(scalide_message(context.handle), "net.exchange: group data: the cable is cut.");
        EXPECT_EQ(echo.aborts, 1);
        EXPECT_EQ(echo.why, scalide_message(context.handle));
        EXPECT_EQ(echo.closes, 0);
    }
    EXPECT_EQ(echo.closes, 1);
}

namespace {

/// A wrong call of a function that joins, and its message.
struct WrongJoin {
    std::string message;
    std::function<scalide_status(scalide_context *, scalide_transport &)> call;
};

scalide_status join_changed(scalide_context *context, const scalide_transport &table) { return scalide_join(context, "data", &table); }

const WrongJoin wrong_joins[] = {
    {"scalide_join: group must not be NULL.", [](auto *context, auto &table) { return scalide_join(context, nullptr, &table); }},
    {"scalide_join: transport must not be NULL.", [](auto *context, auto &) { return scalide_join(context, "data", nullptr); }},
    {"scalide_join: the name of the group must not be empty.",
     [](auto *context, auto &table) { return scalide_join(context, "", &table); }},
    {"scalide_join: group own: this context is a rank of the group already. Join a group once, before scalide_bind.",
     [](auto *context, auto &table) { return scalide_join(context, "own", &table); }},
    {"scalide_join_alone: group own: this context is a rank of the group already. Join a group once, before scalide_bind.",
     [](auto *context, auto &) { return scalide_join_alone(context, "own"); }},
    {"scalide_join: group data: ranks must be in [1, 65536], got 0.",
     [](auto *context, auto &table) { return table.ranks = 0, join_changed(context, table); }},
    {"scalide_join: group data: ranks must be in [1, 65536], got 65537.",
     [](auto *context, auto &table) { return table.ranks = 65537, join_changed(context, table); }},
    {"scalide_join: group data: rank must be in [0, 1], got 2.",
     [](auto *context, auto &table) { return table.rank = 2, join_changed(context, table); }},
    {"scalide_join: group data: rank must be in [0, 1], got -1.",
     [](auto *context, auto &table) { return table.rank = -1, join_changed(context, table); }},
    {"scalide_join: group data: all_gather must not be NULL.",
     [](auto *context, auto &table) { return table.all_gather = nullptr, join_changed(context, table); }},
    {"scalide_join: group data: all_to_all must not be NULL.",
     [](auto *context, auto &table) { return table.all_to_all = nullptr, join_changed(context, table); }},
    {"scalide_join: group data: abort must not be NULL.",
     [](auto *context, auto &table) { return table.abort = nullptr, join_changed(context, table); }},
    {"scalide_join: group data: close must not be NULL.",
     [](auto *context, auto &table) { return table.close = nullptr, join_changed(context, table); }},
    {"scalide_join: group data: struct_size must be sizeof(scalide_transport), " + std::to_string(sizeof(scalide_transport)) +
         ", got 8. Set transport.struct_size = sizeof(scalide_transport).",
     [](auto *context, auto &table) { return table.struct_size = 8, join_changed(context, table); }},
    {"scalide_join_threads: threads must not be NULL.",
     [](auto *context, auto &) { return scalide_join_threads(context, "data", nullptr, 0); }},
    {"scalide_join_threads: group must not be NULL.",
     [](auto *context, auto &) { return scalide_join_threads(context, nullptr, ThreadGroups(1).handle, 0); }},
    {"scalide_join_threads: group data: rank must be in [0, 1], got 2.",
     [](auto *context, auto &) { return scalide_join_threads(context, "data", ThreadGroups(2).handle, 2); }},
    {"scalide_join_alone: group must not be NULL.", [](auto *context, auto &) { return scalide_join_alone(context, nullptr); }},
    {"scalide_join_mpi: group must not be NULL.", [](auto *context, auto &) { return scalide_join_mpi(context, nullptr, nullptr); }},
};

} // namespace

TEST(runtime, refuses_wrong_ranks) {
    Echo echo;
    Context context(1);
    ASSERT_EQ(scalide_join_alone(context.handle, "own"), SCALIDE_OK);
    for (const WrongJoin &wrong : wrong_joins) {
        scalide_transport table = echo.table();
        EXPECT_EQ(wrong.call(context.handle, table), SCALIDE_INVALID_ARGUMENT) << wrong.message;
        EXPECT_EQ(scalide_message(context.handle), wrong.message);
        EXPECT_EQ(scalide_group_ranks(context.handle, "data"), -1);
    }
    const scalide_transport table = echo.table();
    EXPECT_EQ(scalide_join(nullptr, "data", &table), SCALIDE_INVALID_ARGUMENT);
    EXPECT_EQ(scalide_join_alone(nullptr, "data"), SCALIDE_INVALID_ARGUMENT);
    EXPECT_EQ(scalide_join_mpi(nullptr, "data", nullptr), SCALIDE_INVALID_ARGUMENT);
    EXPECT_EQ(scalide_group_ranks(nullptr, "own"), -1);
    EXPECT_EQ(scalide_group_rank(context.handle, nullptr), -1);
    EXPECT_EQ(scalide_group_rank(context.handle, "own"), 0);
    EXPECT_EQ(echo.closes, 0);
    const ThreadGroups threads(2);
    ASSERT_EQ(scalide_join_threads(context.handle, "a", threads.handle, 1), SCALIDE_OK);
    EXPECT_EQ(scalide_join_threads(context.handle, "b", threads.handle, 1), SCALIDE_INVALID_ARGUMENT);
    EXPECT_STREQ(scalide_message(context.handle), "scalide_join_threads: group b: rank 1 of the threads has joined before. Give each "
                                                  "context another rank, or create another group.");
}

TEST(runtime, refuses_wrong_groups_of_threads) {
    scalide_thread_group *group = nullptr;
    char message[256];
    const auto create = [&](int32_t ranks, double limit) {
        return scalide_thread_group_create(ranks, limit, &group, message, sizeof(message));
    };
    for (const int32_t ranks : {0, -1, 65537}) {
        EXPECT_EQ(create(ranks, 0), SCALIDE_INVALID_ARGUMENT);
        EXPECT_EQ(message, "scalide_thread_group_create: ranks must be in [1, 65536], got " + std::to_string(ranks) + ".");
    }
    for (const double limit : {-1.0, std::numeric_limits<double>::infinity(), std::nan("")}) {
        EXPECT_EQ(create(2, limit), SCALIDE_INVALID_ARGUMENT);
        EXPECT_STREQ(message, "scalide_thread_group_create: limit_seconds must be in [0, 1e9]. Pass 0 for no limit.");
    }
    EXPECT_EQ(scalide_thread_group_create(2, 0, nullptr, message, sizeof(message)), SCALIDE_INVALID_ARGUMENT);
    EXPECT_STREQ(message, "scalide_thread_group_create: group must not be NULL.");
    EXPECT_EQ(scalide_thread_group_create(2, -1, &group, nullptr, 0), SCALIDE_INVALID_ARGUMENT);
    EXPECT_EQ(group, nullptr);
    scalide_thread_group_destroy(nullptr);
}

namespace {

/// A change of the plan that bind must refuse, and what the message names.
struct WrongPlan {
    const char *entry;
    std::function<void(BlockPlan &, SumProgram &)> change;
};

const WrongPlan wrong_plans[] = {
    {"exchange", [](auto &plan, auto &) { plan.collectives[0].kind = 2; }},
    {"exchange", [](auto &plan, auto &) { plan.collectives[0].kind = -1; }},
    {"exchange", [](auto &plan, auto &) { plan.collectives[0].group = 0; }},
    {"exchange", [](auto &plan, auto &) { plan.collectives[0].group = -1; }},
    {"exchange", [](auto &plan, auto &) { plan.collectives[0].group = 99; }},
    {"exchange", [](auto &plan, auto &) { plan.collectives[0].count = 0; }},
    {"exchange", [](auto &plan, auto &) { plan.collectives[0].arrays = nullptr; }},
    {"exchange",
     [](auto &plan, auto &net) {
         plan.set_moved(0, 0, {net.x, net.x});
     }},
    {"exchange",
     [](auto &plan, auto &net) {
         plan.set_moved(0, 0, {-1, net.of_x.parts});
     }},
    {"exchange",
     [](auto &plan, auto &net) {
         plan.set_moved(0, 0, {net.x, 99});
     }},
    {"exchange",
     [](auto &plan, auto &net) {
         plan.set_moved(0, 0, {net.x, net.of_u.parts});
     }},
    {"exchange",
     [](auto &plan, auto &net) {
         plan.set_moved(0, 0, {net.of_x.parts, net.x});
     }},
    {"exchange",
     [](auto &plan, auto &net) {
         plan.set_moved(0, 1, {net.x, net.of_x.parts});
     }},
    {"data", [](auto &plan, auto &) { plan.symbols[2].source = 7; }},
    {"data", [](auto &plan, auto &) { plan.symbols[2].source = SCALIDE_RANK; }},
    {"x.chunk", [](auto &plan, auto &) { plan.symbols[3].group = 0; }},
    {"x.chunk", [](auto &plan, auto &) { plan.symbols[3].group = 77; }},
    {"x.chunk", [](auto &plan, auto &) { plan.symbols[3].divided = nullptr; }},
    {"x.chunk", [](auto &plan, auto &) { plan.symbols[3].divided = plan.symbol_extent(4); }},
    {"exchange", [](auto &plan, auto &) { plan.steps()[0].kernel = sum_parts<float>; }},
    {"exchange", [](auto &plan, auto &) { plan.steps()[0].collective = nullptr; }},
    {"exchange", [](auto &plan, auto &) { plan.steps()[0].operand_count = 1; }},
};

} // namespace

TEST(runtime, refuses_wrong_collectives) {
    Context context(1);
    ASSERT_EQ(scalide_join_alone(context.handle, "data"), SCALIDE_OK);
    for (size_t i = 0; i < std::size(wrong_plans); ++i) {
        SumProgram net;
        SumArrays arrays(4, 4, 0);
        Bound bound;
        wrong_plans[i].change(net.plan, net);
        EXPECT_EQ(scalide_bind(context.handle, net.program, arrays.arrays().data(), 4, &bound.handle), SCALIDE_INVALID_PROGRAM) << i;
        EXPECT_EQ(scalide_message(context.handle),
                  std::string("net: the plan has a wrong entry: ") + wrong_plans[i].entry + ". Generate the library again.")
            << i;
    }
    SumProgram net;
    SumArrays arrays(4, 4, 0);
    Bound bound;
    net.plan.symbols[3].divided = net.plan.symbol_extent(1);
    EXPECT_EQ(scalide_bind(context.handle, net.program, SumArrays(9, 4, 0).arrays().data(), 4, &bound.handle), SCALIDE_INVALID_PROGRAM);
    EXPECT_STREQ(scalide_message(context.handle),
                 "net.exchange: the chunks of the ranks must make up the whole array. Generate the library again.");
}
