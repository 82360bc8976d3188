// What runs of loops report: traces, checks, times, failures, interrupts.
#include "allocation.h"
#include "block_programs.h"
#include <atomic>
#include <cmath>
#include <csignal>
#include <thread>

using namespace scalide::test;

namespace {

/// A context, a scan and its binding.
struct BoundScan {
    Context context{1};
    ScanPlan plan;
    ScanArrays arrays;
    Bound binding;

    explicit BoundScan(int64_t n, bool is_reverse = false) : plan(n, 3, false, is_reverse), arrays(n, 3) {}
    scalide_binding *bind() {
        EXPECT_EQ(bind_all(context, plan, arrays.arrays(), binding), SCALIDE_OK) << scalide_message(context.handle);
        return binding.handle;
    }
    std::string message() const { return scalide_message(context.handle); }
};

/// An endless loop that counts its steps in `counted`.
std::atomic<int64_t> counted;
struct EndlessPlan : BlockPlan {
    explicit EndlessPlan(int64_t steps = -1) {
        const int32_t y = argument("y", SCALIDE_INOUT, SCALIDE_I32, {}), is_true = argument("true", SCALIDE_INPUT, SCALIDE_BOOL, {});
        step("count",
             [](void **arguments) {
                 counted = ++*host<int32_t>(arguments[1]);
                 return 0;
             },
             {y});
        BlockRows &loop = block("while y", steps < 0 ? SCALIDE_BLOCK_WHILE : SCALIDE_BLOCK_LOOP, -1, 0, 1, steps);
        if (steps < 0) loop.block.condition = is_true;
        loop.carries = {{y, y, y}};
    }
};

struct BoundEndless {
    Context context{1};
    EndlessPlan plan;
    Elements<int32_t> y{SCALIDE_I32, {}};
    Elements<uint8_t> is_true{SCALIDE_BOOL, {}, 1};
    Bound binding;

    explicit BoundEndless(int64_t steps = -1) : plan(steps) {
        EXPECT_EQ(bind_all(context, plan, {y.array, is_true.array}, binding), SCALIDE_OK) << scalide_message(context.handle);
        counted = 0;
    }
};

void record(void *user, const scalide_traced *buffer, const scalide_array *array) {
    auto &seen = *static_cast<std::string *>(user);
    seen += std::string(buffer->name) + "=" + std::to_string(*static_cast<const int16_t *>(array->data));
    seen += (buffer->loops ? std::string(" (") + buffer->loops + ")" : "") + "; ";
}

} // namespace

TEST(blocks, traces_show_each_step_and_the_results_at_the_end) {
    BoundScan scan(2, true);
    const int32_t middle = scan.plan.array("m", SCALIDE_I16, {3});
    scan.plan.step("copy", copy<int16_t>, {scan.plan.row, middle});
    scan.plan.buffers[static_cast<size_t>(middle)].first_step = 1;
    scan.plan.scan->block.end_step = 2;
    std::string seen;
    ASSERT_EQ(scalide_run_traced(scan.bind(), record, &seen), SCALIDE_OK);
    EXPECT_EQ(seen, "m=6 (step 0 of scan h); y.row=213 (step 0 of scan h); m=3 (step 1 of scan h); y.row=218 (step 1 of scan h); h=109; "
                    "y=218; ");
    scan.arrays.expect(2, true);
}

TEST(blocks, checks_name_the_step_of_a_value_that_is_not_finite) {
    Context context(1);
    BlockPlan plan;
    const int32_t x = plan.argument("x", SCALIDE_INPUT, SCALIDE_F32, {4}), y = plan.argument("y", SCALIDE_OUTPUT, SCALIDE_F32, {});
    const int32_t element = plan.array("element", SCALIDE_F32, {}), before = plan.array("before", SCALIDE_F32, {}),
                  zero = plan.argument("zero", SCALIDE_INPUT, SCALIDE_F32, {});
    plan.step("add",
              [](void **arguments) {
                  *host<float>(arguments[3]) = *host<float>(arguments[1]) + *host<float>(arguments[2]);
                  return 0;
              },
              {before, element, y});
    BlockRows &loop = plan.block("scan y", SCALIDE_BLOCK_LOOP, -1, 0, 1, 4);
    loop.rows = {{element, x, 0}};
    loop.carries = {{zero, before, y}};
    loop.results = {y};
    Elements<float> numbers(SCALIDE_F32, {4}, 1), result(SCALIDE_F32, {}), start(SCALIDE_F32, {});
    Bound binding;
    ASSERT_EQ(bind_all(context, plan, {numbers.array, result.array, start.array}, binding), SCALIDE_OK);
    scalide_non_finite first;
    ASSERT_EQ(scalide_run_checked(binding.handle, &first), SCALIDE_OK);
    EXPECT_EQ(first.buffer, nullptr);
    numbers[2] = INFINITY;
    ASSERT_EQ(scalide_run_checked(binding.handle, &first), SCALIDE_OK);
    EXPECT_STREQ(first.buffer, "y");
    EXPECT_STREQ(first.kernel, "add");
    EXPECT_STREQ(first.loops, "step 2 of scan y");
}

TEST(blocks, profiles_add_the_calls_of_a_step) {
    BoundEndless loop(20);
    scalide_step_profile profile = {};
    ASSERT_EQ(scalide_profile(loop.binding.handle, 3, &profile, 1), SCALIDE_OK);
    EXPECT_EQ(loop.y[0], 60);
    EXPECT_GT(profile.seconds, 0);
    EXPECT_LT(profile.seconds, 1);
}

TEST(blocks, failures_of_kernels_name_the_steps_of_the_loops) {
    BoundScan scan(4);
    scan.plan.step("fail", [](void **arguments) { return *host<int32_t>(arguments[1]) == 2 ? 7 : 0; }, {scan.plan.number});
    scan.plan.scan->block.end_step = 2;
    EXPECT_EQ(scalide_run(scan.bind()), SCALIDE_KERNEL_FAILED);
    EXPECT_EQ(scan.message(), "net.fail: in step 2 of scan h (net.scl:7): the kernel failed with error 7.");
    EXPECT_EQ(scalide_run(scan.binding.handle), SCALIDE_KERNEL_FAILED);
}

TEST(blocks, a_thread_interrupts_a_run_which_can_run_again) {
    BoundEndless loop;
    std::thread other([&] {
        while (counted < 1000) std::this_thread::yield();
        scalide_interrupt(loop.context.handle);
    });
    EXPECT_EQ(scalide_run(loop.binding.handle), SCALIDE_INTERRUPTED);
    other.join();
    EXPECT_EQ(scalide_message(loop.context.handle), "net: interrupted before step " + std::to_string(loop.y[0]) +
                                                        " of while y (net.scl:7). The binding can run again, but arrays that a run "
                                                        "updates must be written again first.");
    loop.is_true[0] = 0;
    EXPECT_EQ(scalide_run(loop.binding.handle), SCALIDE_OK);
    scalide_interrupt(nullptr);
    scalide_interrupt(loop.context.handle);
    EXPECT_EQ(scalide_run(loop.binding.handle), SCALIDE_INTERRUPTED) << "the next run, if none is in progress";
    EXPECT_EQ(scalide_run(loop.binding.handle), SCALIDE_OK);
}

TEST(blocks, an_interrupted_loop_leaves_its_arrays_where_they_were) {
    for (int64_t failing : {0, 1, 2, 3}) {
        BoundScan scan(5);
        static int64_t left;
        static scalide_context *context;
        context = scan.context.handle;
        left = failing;
        scan.plan.step("interrupt",
                       [](void **) {
                           if (left-- == 0) scalide_interrupt(context);
                           return 0;
                       },
                       {});
        scan.plan.scan->block.end_step = 2;
        EXPECT_EQ(scalide_run(scan.bind()), SCALIDE_INTERRUPTED);
        EXPECT_EQ(scalide_run(scan.binding.handle), SCALIDE_OK);
        scan.arrays.expect(5, false);
    }
}

TEST(blocks, a_poll_stops_a_run) {
    BoundEndless loop;
    static int calls;
    calls = 0;
    const auto third = [](void *user) { return static_cast<int>(++*static_cast<int *>(user) == 3); };
    ASSERT_EQ(scalide_set_poll(loop.context.handle, third, &calls), SCALIDE_OK);
    EXPECT_EQ(scalide_set_poll(nullptr, third, &calls), SCALIDE_INVALID_ARGUMENT);
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(scalide_run(loop.binding.handle), SCALIDE_INTERRUPTED);
    EXPECT_EQ(calls, 3);
    EXPECT_GT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(15)) << "two pauses of 10 ms, by a coarse clock";
    ASSERT_EQ(scalide_set_poll(loop.context.handle, nullptr, nullptr), SCALIDE_OK);
    loop.is_true[0] = 0;
    EXPECT_EQ(scalide_run(loop.binding.handle), SCALIDE_OK);
    EXPECT_EQ(calls, 3);
}

TEST(blocks, a_signal_handler_may_interrupt) {
    BoundEndless loop;
    static scalide_context *context;
    context = loop.context.handle;
    const auto before = std::signal(SIGUSR1, [](int) { scalide_interrupt(context); });
    const pthread_t self = pthread_self();
    std::thread other([self] {
        while (counted < 10) std::this_thread::yield();
        pthread_kill(self, SIGUSR1);
    });
    EXPECT_EQ(scalide_run(loop.binding.handle), SCALIDE_INTERRUPTED);
    other.join();
    std::signal(SIGUSR1, before);
}

TEST(blocks, leak_nothing_without_memory) {
    BoundScan scan(3);
    const int before = allocations_live;
    scalide_status status = SCALIDE_OUT_OF_MEMORY;
    int failed = 0;
    for (; status == SCALIDE_OUT_OF_MEMORY; ++failed) {
        ASSERT_LT(failed, 20);
        allocations_made = 0;
        allocation_to_fail = failed;
        scalide_binding *binding = nullptr;
        const std::vector<scalide_array> arrays = scan.arrays.arrays();
        const scalide_program *program = scan.plan.finish();
        scalide_step_profile profile = {};
        status = scalide_bind(scan.context.handle, program, arrays.data(), arrays.size(), &binding);
        if (status == SCALIDE_OK) status = scalide_profile(binding, 1, &profile, 1);
        allocation_to_fail = -1;
        scalide_binding_destroy(binding);
        EXPECT_EQ(allocations_live, before) << failed;
    }
    EXPECT_EQ(status, SCALIDE_OK);
    EXPECT_GE(failed, 5) << "the binding, its layout, the work of the arena, the arena, and the times of the steps";
    scan.arrays.expect(3, false);
}

namespace {

struct Wrong {
    const char *name;
    void (*change)(ScanPlan &);
    const char *message = "net: the plan has a wrong entry: scan h. Generate the library again.";
};

constexpr char not_a_row[] = "net.scan h: each step must have one row of the array, but x does not. Generate the library again.";
constexpr char not_alone[] =
    "net.scan h: the block must be the only one that moves its buffers, but y.row does not. Generate the library again.";

scalide_buffer &buffer(ScanPlan &plan, int32_t index) { return plan.buffers[static_cast<size_t>(index)]; }

const Wrong wrong_plans[] = {
    {"kind", [](ScanPlan &p) { p.scan->block.kind = 3; }},
    {"negative kind", [](ScanPlan &p) { p.scan->block.kind = -1; }},
    {"parent is itself", [](ScanPlan &p) { p.scan->block.parent = 0; }},
    {"parent", [](ScanPlan &p) { p.scan->block.parent = -2; }},
    {"first step", [](ScanPlan &p) { p.scan->block.first_step = -1; }},
    {"end step", [](ScanPlan &p) { p.scan->block.end_step = 2; }},
    {"end before first", [](ScanPlan &p) { p.scan->block.first_step = p.scan->block.end_step + 1; }},
    {"no length and rows", [](ScanPlan &p) { p.scan->block.length = nullptr; }},
    {"no length and no condition",
     [](ScanPlan &p) {
         p.scan->block.length = nullptr;
         p.scan->rows.clear();
     }},
    {"condition is not there", [](ScanPlan &p) { p.scan->block.condition = 99; }},
    {"condition is an array", [](ScanPlan &p) { p.scan->block.condition = p.x; }},
    {"step in an argument", [](ScanPlan &p) { p.scan->block.step = p.count; }},
    {"row is not there", [](ScanPlan &p) { p.scan->rows[0].buffer = 99; }},
    {"array is not there", [](ScanPlan &p) { p.scan->rows[0].of = -1; }},
    {"row in an argument", [](ScanPlan &p) { p.scan->rows[0].buffer = p.h0; }},
    {"writes an input", [](ScanPlan &p) { p.scan->rows[0].is_written = 1; }},
    {"dtype of a row", [](ScanPlan &p) { buffer(p, p.row).dtype = SCALIDE_F16; }},
    {"rank of a row", [](ScanPlan &p) { p.scan->rows[0].of = p.h0; }},
    {"row is not in use",
     [](ScanPlan &p) {
         buffer(p, p.row).first_step = buffer(p, p.row).last_step = 1, p.step("s", copy<int16_t>, {p.row, p.out});
         p.scan->block.end_step = 1;
     }},
    {"init is not there", [](ScanPlan &p) { p.scan->carries[0].init = 99; }},
    {"dtype of a carry", [](ScanPlan &p) { buffer(p, p.before).dtype = SCALIDE_BF16; }},
    {"rank of a carry", [](ScanPlan &p) { p.scan->carries[0].init = p.count; }},
    {"result is an input", [](ScanPlan &p) { p.scan->carries[0].after = p.h0; }},
    {"before is init", [](ScanPlan &p) { p.scan->carries[0].init = p.before; }},
    {"results", [](ScanPlan &p) { p.scan->results[0] = 99; }},
    {"limit of a while", [](ScanPlan &p) { p.scan->block.kind = SCALIDE_BLOCK_WHILE; }},
    {"rows of a switch", [](ScanPlan &p) { p.scan->block.kind = SCALIDE_BLOCK_SWITCH; }},
    {"step is a row",
     [](ScanPlan &p) {
         p.number = p.array("x.i", SCALIDE_I32, {});
         const int32_t numbers = p.array("numbers", SCALIDE_I32, {5});
         p.scan->rows.push_back({p.number, numbers, 0});
         p.scan->block.step = p.number;
     },
     "net.scan h: the number of a step must stay in its place, but x.i does not. Generate the library again."},
    {"writes rows of a row of an input",
     [](ScanPlan &p) {
         const int32_t element = p.array("element", SCALIDE_I16, {});
         p.block("scan row", SCALIDE_BLOCK_LOOP, 0, 0, 1, 3).rows = {{element, p.row, 1}};
     },
     "net.scan row: each array whose rows are written must allow it, but x.row does not. Generate the library again."},
    {"number of rows", [](ScanPlan &p) { p.scan->block.length = buffer(p, p.h).shape; }, not_a_row},
    {"a row twice",
     [](ScanPlan &p) {
         p.scan->rows.push_back({p.out, p.y, 1});
     },
     not_alone},
    {"a row is carried",
     [](ScanPlan &p) {
         p.scan->carries.push_back({p.h0, p.out, p.h});
     },
     not_alone},
    {"shape of a carry", [](ScanPlan &p) { buffer(p, p.h0).shape = buffer(p, p.x).shape; },
     "net.scan h: a carried array must keep its shape, but h0 does not. Generate the library again."},
};

} // namespace

TEST(blocks, wrong_plans_are_refused) {
    for (const Wrong &wrong : wrong_plans) {
        SCOPED_TRACE(wrong.name);
        BoundScan scan(5);
        wrong.change(scan.plan);
        scalide_binding *binding = nullptr;
        std::vector<scalide_array> arrays = scan.arrays.arrays();
        if (scan.plan.buffers[1].shape == scan.plan.buffers[0].shape) arrays[1].extent[0] = 5;
        EXPECT_EQ(scalide_bind(scan.context.handle, scan.plan.finish(), arrays.data(), arrays.size(), &binding), SCALIDE_INVALID_PROGRAM);
        EXPECT_EQ(scan.message(), wrong.message);
        scalide_binding_destroy(binding);
    }
}

TEST(blocks, wrong_nests_are_refused) {
    struct {
        int32_t parent, first, end, branch_end;
    } const cases[] = {{-1, 0, 1, 1}, {-1, 1, 2, 2}, {0, 0, 3, 3}, {0, 0, 2, 1}, {0, 0, 2, 3}, {1, 0, 2, 2}};
    for (const auto &each : cases) {
        Context context(1);
        BlockPlan plan;
        const int32_t y = plan.argument("y", SCALIDE_INOUT, SCALIDE_I32, {});
        for (int i = 0; i < 3; ++i) plan.step("none", [](void **) { return 0; }, {y});
        plan.block("outer", SCALIDE_BLOCK_LOOP, -1, 0, 2, 2);
        BlockRows &inner = plan.block("inner", SCALIDE_BLOCK_SWITCH, each.parent, each.first, each.end);
        inner.branch_ends = {each.branch_end};
        inner.block.condition = y;
        Elements<int32_t> number(SCALIDE_I32, {});
        Bound binding;
        EXPECT_EQ(bind_all(context, plan, {number.array}, binding), SCALIDE_INVALID_PROGRAM) << each.parent << ' ' << each.first;
        EXPECT_STREQ(scalide_message(context.handle), "net: the plan has a wrong entry: inner. Generate the library again.");
    }
}
