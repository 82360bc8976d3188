#include "fixture.h"
#include "group_programs.h"
#include "group_threads.h"
#include <cstring>

using namespace scalide::test;

namespace {

struct Sizes {
    int32_t ranks;
    int64_t n, m;
};

void PrintTo(const Sizes &sizes, std::ostream *stream) { *stream << sizes.ranks << " ranks, " << sizes.n << ", " << sizes.m; }

class groups : public testing::TestWithParam<Sizes> {};

} // namespace

TEST_P(groups, sums_arrays_of_two_dtypes) {
    const auto [ranks, n, m] = GetParam();
    run_ranks(ranks, [n = n, m = m](Rank &rank) {
        rank.join("data");
        const SumProgram net;
        SumArrays arrays(n, m, rank.number);
        Bound bound;
        ASSERT_EQ(rank.bind(net.program, arrays.arrays(), bound), SCALIDE_OK) << rank.message();
        for (int run = 0; run < 3; ++run) {
            std::memset(arrays.y.data(), 0xff, sizeof(float) * static_cast<size_t>(n));
            ASSERT_EQ(scalide_run(bound.handle), SCALIDE_OK) << rank.message();
            EXPECT_EQ(arrays.wrong(rank.ranks), 0);
        }
        EXPECT_EQ(scalide_symbol_value(bound.handle, "data"), rank.ranks);
        EXPECT_EQ(scalide_symbol_value(bound.handle, "x.chunk"), (n + rank.ranks - 1) / rank.ranks);
    });
}

INSTANTIATE_TEST_SUITE_P(runtime, groups,
                         testing::Values(Sizes{1, 7, 3}, Sizes{2, 64, 64}, Sizes{2, 7, 3}, Sizes{3, 100, 1}, Sizes{8, 5, 1000},
                                         Sizes{8, 0, 9}, Sizes{3, 0, 0}, Sizes{4, 100'000, 77}, Sizes{1, 0, 0}),
                         [](const auto &info) {
                             return std::to_string(info.param.ranks) + "_" + std::to_string(info.param.n) + "_" +
                                    std::to_string(info.param.m);
                         });

TEST(runtime, exchanges_arrays_at_any_address) {
    run_ranks(3, [](Rank &rank) {
        rank.join("data");
        const SumProgram net;
        SumArrays arrays(50, 9, rank.number, 3);
        Bound bound;
        ASSERT_EQ(rank.bind(net.program, arrays.arrays(), bound), SCALIDE_OK) << rank.message();
        ASSERT_EQ(scalide_run(bound.handle), SCALIDE_OK) << rank.message();
        EXPECT_EQ(arrays.wrong(rank.ranks), 0);
    });
}

TEST(runtime, copies_views_for_collectives) {
    run_ranks(2, [](Rank &rank) {
        rank.join("data");
        const SumProgram net;
        SumArrays arrays(16, 9, rank.number);
        Elements<float> every_second(SCALIDE_F32, {32});
        for (size_t i = 0; i < 16; ++i) every_second[2 * i] = static_cast<float>(rank.number) + static_cast<float>(i);
        std::vector<scalide_array> passed = arrays.arrays();
        passed[0].data = every_second.data();
        passed[0].stride[0] = 2;
        Bound bound;
        ASSERT_EQ(rank.bind(net.program, passed, bound), SCALIDE_OK) << rank.message();
        EXPECT_EQ(scalide_binding_copied_bytes(bound.handle, 0), 64u);
        ASSERT_EQ(scalide_run(bound.handle), SCALIDE_OK) << rank.message();
        EXPECT_EQ(arrays.wrong(rank.ranks), 0);
    });
}

namespace {

/// program net(x: f32[rank.data + 1]) -> (y: f32[data, c], r: i32)
///   y = the chunks of all ranks, one array, which is the message if c is a multiple of 16
struct CollectProgram {
    BlockPlan plan;
    int64_t c = plan.symbol("c"), data = plan.group("data");
    int32_t x = plan.argument("x", SCALIDE_INPUT, SCALIDE_F32, {c}), y = plan.argument("y", SCALIDE_OUTPUT, SCALIDE_F32, {data, c});
    const scalide_program *program;

    CollectProgram() {
        plan.collective("collect", SCALIDE_COLLECT, data, {{x, y}});
        program = plan.finish();
    }
};

void collect(Rank &rank, int64_t c) {
    const CollectProgram net;
    Elements<float> x(SCALIDE_F32, {c}, static_cast<float>(rank.number)), y(SCALIDE_F32, {rank.ranks, c}, -1);
    Bound bound;
    ASSERT_EQ(rank.bind(net.program, {x.array, y.array}, bound), SCALIDE_OK) << rank.message();
    ASSERT_EQ(scalide_run(bound.handle), SCALIDE_OK) << rank.message();
    for (size_t i = 0; i < static_cast<size_t>(rank.ranks * c); ++i) ASSERT_EQ(y[i], static_cast<float>(i / static_cast<size_t>(c)));
    scalide_step_profile profile = {};
    ASSERT_EQ(scalide_profile(bound.handle, 2, &profile, 1), SCALIDE_OK) << rank.message();
    EXPECT_STREQ(profile.name, "collect");
    EXPECT_EQ(profile.bytes, static_cast<uint64_t>(4 * c * (1 + rank.ranks)));
    EXPECT_LT(profile.seconds, 60);
}

} // namespace

TEST(runtime, collects_an_array_with_and_without_copies_into_messages) {
    for (const int32_t ranks : {1, 3})
        run_ranks(ranks, [](Rank &rank) {
            rank.join("data");
            for (const int64_t c : {16, 5}) collect(rank, c);
        });
}

TEST(runtime, names_the_number_of_ranks_in_a_message_about_a_shape) {
    run_ranks(2, [](Rank &rank) {
        rank.join("data");
        const CollectProgram net;
        Elements<float> x(SCALIDE_F32, {4}), y(SCALIDE_F32, {3, 4});
        Bound bound;
        ASSERT_EQ(rank.bind(net.program, {x.array, y.array}, bound), SCALIDE_INVALID_ARGUMENT);
        EXPECT_STREQ(rank.message(),
                     "net.y: extent 0 must be 2, the number of ranks of group data, got 3. Pass an array of shape [data, c] "
                     "with c = 4 from x, data = 2 (the number of ranks).");
    });
}

namespace {

/// program net(x: f32[3, n], a: f32[n]) -> (y: f32[3, n], b: f32[n])
///   scan: y[i] = x[i] summed over the ranks; b begins as a and is summed over the ranks in each step
struct LoopProgram {
    BlockPlan plan;
    int64_t n = plan.symbol("n"), data = plan.group("data");
    int32_t x = plan.argument("x", SCALIDE_INPUT, SCALIDE_F32, {3, n}), a = plan.argument("a", SCALIDE_INPUT, SCALIDE_F32, {n}),
            y = plan.argument("y", SCALIDE_OUTPUT, SCALIDE_F32, {3, n}), b = plan.argument("b", SCALIDE_OUTPUT, SCALIDE_F32, {n});
    int32_t x_row = plan.array("x_row", SCALIDE_F32, {n}), y_row = plan.array("y_row", SCALIDE_F32, {n}),
            before = plan.array("before", SCALIDE_F32, {n});
    Summed row{plan, "row", SCALIDE_F32, data, n}, carried{plan, "carried", SCALIDE_F32, data, n};
    const scalide_program *program;

    LoopProgram() {
        plan.collective("exchange", SCALIDE_EXCHANGE, data, {{x_row, row.parts}, {before, carried.parts}});
        plan.step("sum_row", sum_parts<float>, {row.parts, row.mine});
        plan.step("sum_carried", sum_parts<float>, {carried.parts, carried.mine});
        plan.collective("collect", SCALIDE_COLLECT, data, {{row.mine, y_row}, {carried.mine, b}});
        BlockRows &scan = plan.block("scan y", SCALIDE_BLOCK_LOOP, -1, 0, 4, 3);
        scan.rows = {{x_row, x, 0}, {y_row, y, 1}};
        scan.carries = {{a, before, b}};
        scan.results = {y, b};
        program = plan.finish();
    }
};

void loop(Rank &rank, int64_t n, size_t offset) {
    const LoopProgram net;
    Elements<float> x(SCALIDE_F32, {3, n}, 0, offset), y(SCALIDE_F32, {3, n}, -1), a(SCALIDE_F32, {n}, 0, offset), b(SCALIDE_F32, {n}, -1);
    x.fill(static_cast<float>(rank.number), 1);
    a.fill(static_cast<float>(rank.number), 2);
    Bound bound;
    ASSERT_EQ(rank.bind(net.program, {x.array, a.array, y.array, b.array}, bound), SCALIDE_OK) << rank.message();
    const auto ranks = static_cast<float>(rank.ranks), all = ranks * (ranks - 1) / 2;
    for (int run = 0; run < 2; ++run) {
        ASSERT_EQ(scalide_run(bound.handle), SCALIDE_OK) << rank.message();
        for (size_t i = 0; i < static_cast<size_t>(3 * n); ++i) ASSERT_EQ(y[i], ranks * static_cast<float>(i) + all) << i;
        for (size_t i = 0; i < static_cast<size_t>(n); ++i) ASSERT_EQ(b[i], (2 * ranks * static_cast<float>(i) + all) * ranks * ranks) << i;
    }
}

} // namespace

TEST(runtime, exchanges_rows_and_carried_arrays_of_a_loop) {
    for (const int32_t ranks : {1, 2, 3})
        run_ranks(ranks, [](Rank &rank) {
            rank.join("data");
            for (const int64_t n : {16, 5}) // rows in place, and copies
                for (const size_t offset : {0, 1}) loop(rank, n, offset);
        });
}

TEST(runtime, exchanges_over_the_two_groups_of_a_grid) {
    run_grid([](Rank &rank, int32_t row, int32_t column) {
        const GridProgram net;
        Elements<float> x(SCALIDE_F32, {33}, static_cast<float>(1 << rank.number)), y(SCALIDE_F32, {33}, -1);
        Bound bound;
        ASSERT_EQ(rank.bind(net.program, {x.array, y.array}, bound), SCALIDE_OK) << rank.message();
        ASSERT_EQ(scalide_run(bound.handle), SCALIDE_OK) << rank.message();
        for (size_t i = 0; i < 33; ++i) ASSERT_EQ(y[i], 15) << i;
        EXPECT_EQ(scalide_symbol_value(bound.handle, "row"), row);
        EXPECT_EQ(scalide_group_rank(rank.context.handle, "columns"), column);
        EXPECT_EQ(scalide_group_ranks(rank.context.handle, "columns"), 2);
        EXPECT_EQ(scalide_group_ranks(rank.context.handle, "planes"), -1);
    });
}

TEST(runtime, gives_the_values_of_group_symbols_itself) {
    run_ranks(2, [](Rank &rank) {
        rank.join("data");
        const SumProgram net;
        EXPECT_EQ(scalide_symbol_count(net.program), 2u) << "n and m";
        scalide_symbol_info info = {};
        ASSERT_EQ(scalide_describe_symbol(net.program, 1, &info), SCALIDE_OK);
        EXPECT_STREQ(info.name, "m");
        EXPECT_EQ(scalide_describe_symbol(net.program, 2, &info), SCALIDE_INVALID_ARGUMENT);
        const int64_t values[] = {12, 5}, c = 6;
        scalide_array arrays[4] = {};
        ASSERT_EQ(scalide_shape_arguments(rank.context.handle, net.program, values, 2, arrays, 4), SCALIDE_OK) << rank.message();
        EXPECT_EQ(arrays[2].extent[0], 12);
        const CollectProgram collected;
        ASSERT_EQ(scalide_shape_arguments(rank.context.handle, collected.program, &c, 1, arrays, 2), SCALIDE_OK) << rank.message();
        EXPECT_EQ(arrays[1].extent[0], 2);
        EXPECT_EQ(scalide_shape_arguments(rank.context.handle, net.program, values, 1, arrays, 4), SCALIDE_INVALID_ARGUMENT);
        EXPECT_STREQ(rank.message(), "net: the number of values must be the number of symbols, 2, got 1. scalide_describe_symbol lists the "
                                     "symbols.");
        arrays[0] = scalide_dense_array(nullptr, nullptr, SCALIDE_F32, 1, &c);
        ASSERT_EQ(scalide_shape_outputs(rank.context.handle, collected.program, arrays, 2), SCALIDE_OK) << rank.message();
        EXPECT_EQ(arrays[1].extent[0], 2);
        EXPECT_EQ(arrays[1].extent[1], 6);
    });
}

TEST(runtime, traces_what_collectives_write) {
    run_ranks(2, [](Rank &rank) {
        rank.join("data");
        const SumProgram net;
        SumArrays arrays(6, 2, rank.number);
        Bound bound;
        ASSERT_EQ(rank.bind(net.program, arrays.arrays(), bound), SCALIDE_OK) << rank.message();
        std::string names;
        const auto note = [](void *user, const scalide_traced *buffer, const scalide_array *) {
            *static_cast<std::string *>(user) += buffer->name + std::string(" ");
        };
        ASSERT_EQ(scalide_run_traced(bound.handle, note, &names), SCALIDE_OK) << rank.message();
        EXPECT_NE(names.find("x.parts"), std::string::npos) << names;
        EXPECT_EQ(arrays.wrong(2), 0);
        scalide_non_finite first = {};
        arrays.x[0] = rank.number == 0 ? std::numeric_limits<float>::infinity() : 0;
        ASSERT_EQ(scalide_run_checked(bound.handle, &first), SCALIDE_OK) << rank.message();
        ASSERT_NE(first.buffer, nullptr);
        EXPECT_STREQ(first.buffer, rank.number == 0 ? "x.parts" : "y");
    });
}

TEST(runtime, binds_like_a_binding_of_the_same_or_another_rank) {
    const SumProgram net;
    const ThreadGroups threads(2);
    Context first(1), second(1);
    Bound bound, like, other;
    SumArrays arrays(9, 4, 0), more(9, 4, 0), others(9, 4, 1);
    ASSERT_EQ(scalide_join_threads(first.handle, "data", threads.handle, 0), SCALIDE_OK);
    ASSERT_EQ(scalide_bind(first.handle, net.program, arrays.arrays().data(), 4, &bound.handle), SCALIDE_OK);
    EXPECT_EQ(scalide_bind_like(second.handle, bound.handle, others.arrays().data(), 4, &other.handle), SCALIDE_INVALID_ARGUMENT);
    EXPECT_STREQ(scalide_message(second.handle), "net: the program exchanges arrays in group data, but the context is no rank of it. Call "
                                                 "scalide_join_mpi, scalide_join_threads, or scalide_join_alone for one rank.");
    ASSERT_EQ(scalide_join_threads(second.handle, "data", threads.handle, 1), SCALIDE_OK);
    ASSERT_EQ(scalide_bind_like(second.handle, bound.handle, others.arrays().data(), 4, &other.handle), SCALIDE_OK);
    ASSERT_EQ(scalide_bind_like(first.handle, bound.handle, more.arrays().data(), 4, &like.handle), SCALIDE_OK);
    std::thread thread([&] { EXPECT_EQ(scalide_run(other.handle), SCALIDE_OK) << scalide_message(second.handle); });
    EXPECT_EQ(scalide_run(like.handle), SCALIDE_OK) << scalide_message(first.handle);
    thread.join();
    EXPECT_EQ(more.wrong(2), 0);
    EXPECT_EQ(others.wrong(2), 0);
}
