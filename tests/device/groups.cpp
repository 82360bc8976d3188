// Collectives of programs for a device. The transport is in this test: the second rank has the data of the first one.
#include "device/standin_driver.h"
#include "runtime/group_programs.h"
#include "runtime/group_threads.h"

using namespace scalide::test;

namespace {

/// program net(x: f32[3, n], u: i16[m]) -> (y: f32[3, 2*c], v: i16[m], w: f32[data, n])
///   loop: y[i] = the exchanged chunks of x[i]; v = u in chunks; w = the last row of y of all ranks
struct DeviceProgram {
    BlockPlan plan;
    int64_t n = plan.symbol("n"), m = plan.symbol("m"), data = plan.group("data"), c = plan.chunk("c", data, n),
            d = plan.chunk("d", data, m);
    int32_t x = plan.argument("x", SCALIDE_INPUT, SCALIDE_F32, {3, n}), u = plan.argument("u", SCALIDE_INPUT, SCALIDE_I16, {m}),
            y = plan.argument("y", SCALIDE_OUTPUT, SCALIDE_F32, {3, data, c}),
            v = plan.argument("v", SCALIDE_OUTPUT, SCALIDE_I16, {data, d}),
            w = plan.argument("w", SCALIDE_OUTPUT, SCALIDE_F32, {data, data, c});
    int32_t x_row = plan.array("x_row", SCALIDE_F32, {n}), y_row = plan.array("y_row", SCALIDE_F32, {data, c});
    scalide_program program;

    DeviceProgram() {
        plan.collective("exchange", SCALIDE_EXCHANGE, data, {{x_row, y_row}, {u, v}});
        plan.collective("collect", SCALIDE_COLLECT, data, {{y_row, w}});
        BlockRows &loop = plan.block("loop", SCALIDE_BLOCK_LOOP, -1, 0, 2, 3);
        loop.rows = {{x_row, x, 0}, {y_row, y, 1}};
        loop.results = {y};
        program = *plan.finish();
        program.device = SCALIDE_CUDA;
        program.target = "x86-64-linux-cuda-cuda_capability_80";
    }
};

/// A context on the emulated driver, in a group.
struct DeviceRank {
    Standin driver;
    Echo echo;
    scalide_context *context = nullptr;

    explicit DeviceRank(bool is_alone) {
        scalide_options options = {};
        options.struct_size = sizeof(options);
        options.device = SCALIDE_CUDA;
        EXPECT_EQ(scalide_context_create(&options, &context), SCALIDE_OK);
        const scalide_transport table = echo.table();
        const scalide_status status = is_alone ? scalide_join_alone(context, "data") : scalide_join(context, "data", &table);
        EXPECT_EQ(status, SCALIDE_OK) << scalide_message(context);
    }
    DeviceRank(const DeviceRank &) = delete;
    DeviceRank &operator=(const DeviceRank &) = delete;
    ~DeviceRank() { scalide_context_destroy(context); }
};

/// An array on the device.
template<typename T>
struct OnDevice {
    scalide_context *context;
    std::vector<T> values;
    scalide_array array;

    OnDevice(scalide_context *context, int32_t dtype, const std::vector<int64_t> &shape) : context(context) {
        size_t count = 1;
        for (const int64_t extent : shape) count *= static_cast<size_t>(extent);
        for (size_t i = 0; i < count; ++i) values.push_back(static_cast<T>(i));
        array = scalide_dense_array(nullptr, nullptr, dtype, static_cast<int32_t>(shape.size()), shape.data());
        EXPECT_EQ(scalide_allocate(context, count * sizeof(T), &array.data), SCALIDE_OK);
        EXPECT_EQ(scalide_copy_in(context, array.data, values.data(), count * sizeof(T)), SCALIDE_OK);
    }
    OnDevice(const OnDevice &) = delete;
    OnDevice &operator=(const OnDevice &) = delete;
    ~OnDevice() { scalide_release(context, array.data); }

    const std::vector<T> &read() {
        EXPECT_EQ(scalide_copy_out(context, values.data(), array.data, values.size() * sizeof(T)), SCALIDE_OK);
        return values;
    }
};

/// Runs the program for these extents.
void exchange(int64_t n, int64_t m, int64_t ranks) {
    DeviceRank rank(ranks == 1);
    DeviceProgram net;
    const int64_t c = (n + ranks - 1) / ranks, d = (m + ranks - 1) / ranks;
    OnDevice<float> x(rank.context, SCALIDE_F32, {3, n}), y(rank.context, SCALIDE_F32, {3, ranks, c}),
        w(rank.context, SCALIDE_F32, {ranks, ranks, c});
    OnDevice<int16_t> u(rank.context, SCALIDE_I16, {m}), v(rank.context, SCALIDE_I16, {ranks, d});
    const scalide_array arrays[] = {x.array, u.array, y.array, v.array, w.array};
    Bound bound;
    ASSERT_EQ(scalide_bind(rank.context, &net.program, arrays, 5, &bound.handle), SCALIDE_OK) << scalide_message(rank.context);
    for (int run = 0; run < 2; ++run) ASSERT_EQ(scalide_run(bound.handle), SCALIDE_OK) << scalide_message(rank.context);
    EXPECT_EQ(rank.echo.calls, ranks == 1 ? 0 : 2 + 2 * 2 * 3);
    for (int64_t row = 0; row < 3; ++row)
        for (int64_t i = 0; i < ranks * c; ++i)
            ASSERT_EQ(y.read()[static_cast<size_t>(row * ranks * c + i)], static_cast<float>(row * n + i % c)) << row << ", " << i;
    for (int64_t i = 0; i < ranks * d; ++i) ASSERT_EQ(v.read()[static_cast<size_t>(i)], i % d) << i;
    for (int64_t i = 0; i < ranks * ranks * c; ++i) ASSERT_EQ(w.read()[static_cast<size_t>(i)], static_cast<float>(2 * n + i % c)) << i;
    std::vector<scalide_step_profile> profile(2);
    ASSERT_EQ(scalide_profile(bound.handle, 1, profile.data(), 2), SCALIDE_OK) << scalide_message(rank.context);
    EXPECT_GT(profile[0].seconds, 0);
    EXPECT_EQ(scalide_capture(bound.handle), SCALIDE_UNSUPPORTED);
    EXPECT_STREQ(scalide_message(rank.context), "net: the ranks exchange arrays on the host, so a run cannot be captured. Use scalide_run "
                                                "without scalide_capture.");
}

} // namespace

TEST(groups, exchange_arrays_of_a_device) {
    exchange(32, 64, 2);
    exchange(5, 3, 2);
    exchange(5, 3, 1);
}
