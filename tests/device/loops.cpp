// device.loops.*: loops and branches of plans on OpenCL, written by hand: the host starts the steps of a loop one after the other. Skipped
// without a driver. What a run of CUDA asks of the driver is in the calls of the stand-in.
#include "bound_products.h"
#include "launching_program.h"
#include "runtime/block_plan.h"
#include "standin_driver.h"
#include <algorithm>
#include <numeric>

using namespace scalide::test;
using scalide::HalideBuffer;

extern "C" {
int halide_opencl_initialize_kernels(void *user_context, void **state, const char *source, int size);
int halide_opencl_run(void *user_context, void *state, const char *name, int blocks_x, int blocks_y, int blocks_z, int threads_x,
                      int threads_y, int threads_z, int shared_bytes, size_t *sizes, void **arguments, int8_t *is_buffer);
}

namespace {

constexpr char source[] = R"(
__kernel void accumulate(__global const int *before, __global const int *row, __global int *after, __global int *out,
                         __global const int *step, __local short *shared) {
    const int i = get_group_id(0);
    after[i] = before[i] + row[i];
    out[i] = 2 * after[i] + step[0];
}
__kernel void twice(__global const int *x, __global int *y, __local short *shared) { y[get_group_id(0)] = 2 * x[get_group_id(0)]; }
__kernel void less(__global const int *x, __global const int *limit, __global uchar *result, __local short *shared) {
    result[0] = x[0] < limit[0];
}
)";

/// Launches a kernel with one thread for each element of its first buffer.
int launch(void **arguments, const char *name, int count) {
    static void *state;
    void *user_context = *static_cast<void **>(arguments[0]);
    std::vector<size_t> sizes(static_cast<size_t>(count), sizeof(void *));
    std::vector<void *> buffers(arguments + 1, arguments + 1 + count);
    std::vector<int8_t> is_buffer(static_cast<size_t>(count), 1);
    sizes.push_back(0), buffers.push_back(nullptr), is_buffer.push_back(0);
    halide_opencl_initialize_kernels(user_context, &state, source, 0);
    return halide_opencl_run(user_context, state, name, static_cast<int>(elements(arguments[1])), 1, 1, 1, 1, 1, 0, sizes.data(),
                             buffers.data(), is_buffer.data());
}
int accumulate(void **arguments) { return launch(arguments, "accumulate", 5); }
int twice(void **arguments) { return launch(arguments, "twice", 2); }
int less(void **arguments) { return launch(arguments, "less", 3); }

/// Arrays of i32 in the memory of a context.
class Arrays {
public:
    explicit Arrays(scalide_context *context) : context_(context) {}
    Arrays(const Arrays &) = delete;
    Arrays &operator=(const Arrays &) = delete;
    ~Arrays() {
        for (void *each : taken_) scalide_release(context_, each);
    }

    void add(const std::vector<int64_t> &shape, const std::vector<int32_t> &values, int32_t dtype = SCALIDE_I32) {
        void *memory = nullptr;
        EXPECT_EQ(scalide_allocate(context_, 4 * values.size() + 4, &memory), SCALIDE_OK);
        EXPECT_EQ(scalide_copy_in(context_, memory, values.data(), 4 * values.size()), SCALIDE_OK);
        taken_.push_back(memory);
        counts_.push_back(values.size());
        descriptors.push_back(scalide_dense_array(memory, nullptr, dtype, static_cast<int32_t>(shape.size()), shape.data()));
    }
    std::vector<int32_t> values(size_t index) const {
        std::vector<int32_t> values(counts_[index]);
        EXPECT_EQ(scalide_copy_out(context_, values.data(), descriptors[index].data, 4 * values.size()), SCALIDE_OK);
        return values;
    }
    std::vector<scalide_array> descriptors;

private:
    scalide_context *context_;
    std::vector<void *> taken_;
    std::vector<size_t> counts_;
};

class loops : public testing::Test {
protected:
    void SetUp() override {
        if (context.status == SCALIDE_NO_DEVICE) GTEST_SKIP() << context.message;
        ASSERT_EQ(context.status, SCALIDE_OK) << context.message;
    }
    void bind(BlockPlan &plan, const Arrays &arrays) {
        program = *plan.finish();
        program.device = SCALIDE_OPENCL;
        program.target = "x86-64-linux-opencl";
        scalide_binding *made = nullptr;
        ASSERT_EQ(scalide_bind(context.handle, &program, arrays.descriptors.data(), arrays.descriptors.size(), &made), SCALIDE_OK)
            << scalide_message(context.handle);
        binding.reset(made);
    }
    std::string message() const { return scalide_message(context.handle); }

    const Context context{SCALIDE_OPENCL};
    scalide_program program = {};
    std::unique_ptr<scalide_binding, void (*)(scalide_binding *)> binding{nullptr, scalide_binding_destroy};
};

/// program net(x: i32[n, width], h0: i32[width], count: i32[]) -> (h: i32[width], y: i32[n, width])   h, y = scan(x, h0)
struct Scan : BlockPlan {
    Scan(int64_t n, int64_t width, bool is_reverse) {
        const int32_t x = argument("x", SCALIDE_INPUT, SCALIDE_I32, {n, width}), h0 = argument("h0", SCALIDE_INPUT, SCALIDE_I32, {width}),
                      count = argument("count", SCALIDE_INPUT, SCALIDE_I32, {}), h = argument("h", SCALIDE_OUTPUT, SCALIDE_I32, {width}),
                      y = argument("y", SCALIDE_OUTPUT, SCALIDE_I32, {n, width});
        const int32_t row = array("x.row", SCALIDE_I32, {width}), out = array("y.row", SCALIDE_I32, {width}),
                      before = array("h.before", SCALIDE_I32, {width}), number = array("i", SCALIDE_I32, {});
        step("accumulate", accumulate, {before, row, h, out, number});
        BlockRows &scan = block("scan h", SCALIDE_BLOCK_LOOP, -1, 0, 1, n);
        scan.rows = {{row, x, 0}, {out, y, 1}};
        scan.carries = {{h0, before, h}};
        scan.results = {h, y};
        scan.block.step = number;
        scan.block.condition = count;
        scan.block.reverse = is_reverse;
    }
};

void record(void *user, const scalide_traced *buffer, const scalide_array *array) {
    *static_cast<std::string *>(user) += std::string(buffer->name) + "=" + std::to_string(*static_cast<const int32_t *>(array->data)) +
                                         (buffer->loops ? std::string(" (") + buffer->loops + "); " : "; ");
}

} // namespace

TEST_F(loops, scan_takes_and_makes_rows) {
    for (int64_t width : {3, 16}) // rows that are copied, and rows in place
        for (int32_t count : {0, 1, 4, 5})
            for (bool is_reverse : {false, true}) {
                SCOPED_TRACE(testing::Message() << count << " rows of " << width << (is_reverse ? " reverse" : ""));
                Scan plan(5, width, is_reverse);
                Arrays arrays(context.handle);
                std::vector<int32_t> x(static_cast<size_t>(5 * width)), h(static_cast<size_t>(width), 100), y(x.size(), 0);
                std::iota(x.begin(), x.end(), 1);
                arrays.add({5, width}, x);
                arrays.add({width}, h);
                arrays.add({}, {count});
                arrays.add({width}, h);
                arrays.add({5, width}, x);
                bind(plan, arrays);
                for (int run = 0; run < 2; ++run) ASSERT_EQ(scalide_run(binding.get()), SCALIDE_OK) << message();
                for (int64_t k = 0; k < count; ++k) {
                    const int64_t i = is_reverse ? count - 1 - k : k;
                    for (int64_t c = 0; c < width; ++c) {
                        const auto at = static_cast<size_t>(i * width + c);
                        h[static_cast<size_t>(c)] += x[at];
                        y[at] = 2 * h[static_cast<size_t>(c)] + static_cast<int32_t>(i);
                    }
                }
                EXPECT_EQ(arrays.values(3), h);
                EXPECT_EQ(arrays.values(4), y);
            }
}

TEST_F(loops, while_and_switch_read_what_kernels_compute) {
    BlockPlan plan;
    const int32_t x = plan.argument("x", SCALIDE_INPUT, SCALIDE_I32, {}), limit = plan.argument("limit", SCALIDE_INPUT, SCALIDE_I32, {}),
                  y = plan.argument("y", SCALIDE_OUTPUT, SCALIDE_I32, {}), z = plan.argument("z", SCALIDE_OUTPUT, SCALIDE_I32, {});
    const int32_t before = plan.array("before", SCALIDE_I32, {}), is_less = plan.array("less", SCALIDE_BOOL, {});
    plan.step("less", less, {before, limit, is_less});
    plan.step("twice", twice, {before, y});
    plan.step("first", twice, {x, z});
    plan.step("second", twice, {y, z});
    BlockRows &loop = plan.block("while y", SCALIDE_BLOCK_WHILE, -1, 0, 2);
    loop.block.condition = is_less;
    loop.block.test_end = 1;
    loop.block.most_steps = 5;
    loop.carries = {{x, before, y}};
    BlockRows &choice = plan.block("switch z", SCALIDE_BLOCK_SWITCH, -1, 2, 4);
    choice.block.condition = limit;
    choice.branch_ends = {3, 4};
    for (int32_t most : {0, 9, 24, 97}) {
        Arrays arrays(context.handle);
        for (int32_t value : {3, most, 0, 0}) arrays.add({}, {value});
        bind(plan, arrays);
        const scalide_status status = scalide_run(binding.get());
        ASSERT_EQ(status, most > 96 ? SCALIDE_STEP_LIMIT : SCALIDE_OK) << message();
        if (status != SCALIDE_OK) {
            EXPECT_NE(message().find("cannot begin step 5 of while y (net.scl:7)"), std::string::npos) << message();
            continue;
        }
        int32_t expected = 3;
        while (expected < most) expected *= 2;
        EXPECT_EQ(arrays.values(2)[0], expected);
        EXPECT_EQ(arrays.values(3)[0], most <= 0 ? 6 : 2 * expected);
    }
}

TEST_F(loops, are_traced_profiled_and_interrupted) {
    Scan plan(3, 3, false);
    Arrays arrays(context.handle);
    arrays.add({3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
    arrays.add({3}, {10, 20, 30});
    arrays.add({}, {2});
    arrays.add({3}, {0, 0, 0});
    arrays.add({3, 3}, std::vector<int32_t>(9));
    bind(plan, arrays);
    std::string seen;
    ASSERT_EQ(scalide_run_traced(binding.get(), record, &seen), SCALIDE_OK) << message();
    EXPECT_EQ(seen, "y.row=22 (step 0 of scan h); y.row=31 (step 1 of scan h); h=15; y=22; ");
    scalide_step_profile profile = {};
    ASSERT_EQ(scalide_profile(binding.get(), 2, &profile, 1), SCALIDE_OK) << message();
    EXPECT_GT(profile.seconds, 0);
    scalide_interrupt(context.handle);
    EXPECT_EQ(scalide_run(binding.get()), SCALIDE_INTERRUPTED);
    EXPECT_EQ(message().find("net: interrupted before step 0 of scan h (net.scl:7)"), 0U);
    EXPECT_EQ(scalide_run(binding.get()), SCALIDE_OK);
    EXPECT_EQ(arrays.values(3), (std::vector<int32_t>{15, 27, 39}));
    EXPECT_EQ(scalide_capture(binding.get()), SCALIDE_UNSUPPORTED);
}

TEST_F(loops, copy_arrays_with_strides_once) {
    Scan plan(2, 3, false);
    Arrays arrays(context.handle);
    arrays.add({2, 3}, {1, 2, 3, -1, 4, 5, 6, -1});
    arrays.add({3}, {10, 20, 30});
    arrays.add({}, {2});
    arrays.add({3}, {0, 0, 0});
    arrays.add({2, 3}, std::vector<int32_t>(8, -7));
    arrays.descriptors[0].stride[0] = arrays.descriptors[4].stride[0] = 4;
    bind(plan, arrays);
    ASSERT_EQ(scalide_run(binding.get()), SCALIDE_OK) << message();
    EXPECT_EQ(arrays.values(3), (std::vector<int32_t>{15, 27, 39}));
    EXPECT_EQ(arrays.values(4), (std::vector<int32_t>{22, 44, 66, -7, 31, 55, 79, -7}));
}

namespace {

/// The launching program in a loop of `steps` steps, which carries the loss.
struct LaunchingLoop {
    explicit LaunchingLoop(int64_t steps) : term{steps, {-1, -1, -1, -1}} {
        block.name = "fori loss";
        block.end_step = 1;
        block.parent = block.condition = block.step = -1;
        block.length = &length;
        buffers.assign(program.buffers, program.buffers + program.buffer_count);
        buffers.push_back({"before", SCALIDE_F32, 0, nullptr, SCALIDE_STORAGE_ARENA, -1, 0, 0, 0, nullptr, nullptr});
        program.buffers = buffers.data();
        program.buffer_count = static_cast<int32_t>(buffers.size());
        block.carries = &carry;
        block.carry_count = 1;
        program.blocks = &block;
        program.block_count = 1;
    }
    LaunchingLoop(const LaunchingLoop &) = delete;
    LaunchingLoop &operator=(const LaunchingLoop &) = delete;

    scalide_program program = *launching_program();
    scalide_term term;
    scalide_extent length = {&term, 1};
    scalide_block block = {};
    scalide_carry carry = {3, 4, 1};
    std::vector<scalide_buffer> buffers;
};

/// The loop bound to arrays of its own.
struct BoundLoop {
    explicit BoundLoop(int64_t steps) : context(SCALIDE_CUDA), loop(steps), arrays(context.handle) {
        EXPECT_EQ(context.status, SCALIDE_OK) << context.message;
        arrays.add({2, 4}, std::vector<int32_t>(8), SCALIDE_F32);
        arrays.add({}, {0}, SCALIDE_F32);
        bind();
    }
    ~BoundLoop() { scalide_binding_destroy(binding); }
    BoundLoop(const BoundLoop &) = delete;
    BoundLoop &operator=(const BoundLoop &) = delete;

    void bind() { EXPECT_EQ(scalide_bind(context.handle, &loop.program, arrays.descriptors.data(), 2, &binding), SCALIDE_OK) << message(); }
    const char *message() const { return scalide_message(context.handle); }

    const Context context;
    LaunchingLoop loop;
    Arrays arrays;
    scalide_binding *binding = nullptr;
};

int count_calls(const Standin &standin, const std::string &name) {
    int count = 0;
    for (const std::string &call : standin.calls()) count += call.find(name) == 0;
    return count;
}

} // namespace

TEST(loops_on_cuda, of_a_fixed_number_of_steps_are_one_graph) {
    const Standin standin;
    const BoundLoop bound(3);
    ASSERT_EQ(scalide_run(bound.binding), SCALIDE_OK) << bound.message();
    standin.reset(-1, 0);
    ASSERT_EQ(scalide_capture(bound.binding), SCALIDE_OK) << bound.message();
    EXPECT_EQ(count_calls(standin, "cuLaunchKernel"), 6);
    const size_t calls = standin.calls().size();
    standin.reset(-1, 0);
    ASSERT_EQ(scalide_run(bound.binding), SCALIDE_OK) << bound.message();
    EXPECT_EQ(count_calls(standin, "cuGraphLaunch"), 1);
    EXPECT_EQ(count_calls(standin, "cuLaunchKernel"), 0);
    for (size_t number = 0; number < calls; ++number) {
        standin.reset(static_cast<int64_t>(number), 999);
        const scalide_status status = scalide_capture(bound.binding);
        const std::string words = bound.message();
        EXPECT_TRUE(status == SCALIDE_OK || words.find("CUDA_ERROR_UNKNOWN") != std::string::npos) << number << ": " << words;
        standin.reset(-1, 0);
        EXPECT_EQ(scalide_capture(bound.binding), SCALIDE_OK) << bound.message();
        EXPECT_EQ(scalide_run(bound.binding), SCALIDE_OK) << number;
    }
    scalide_interrupt(bound.context.handle);
    EXPECT_EQ(scalide_capture(bound.binding), SCALIDE_INTERRUPTED);
    EXPECT_STREQ(bound.message(),
                 "launching: cannot capture a run: the application interrupted it. Use scalide_run without scalide_capture.");
    EXPECT_EQ(scalide_capture(bound.binding), SCALIDE_OK) << bound.message();
}

TEST(loops_on_cuda, of_too_many_launches_are_no_graph) {
    const Standin standin;
    const BoundLoop bound(40000);
    EXPECT_EQ(scalide_capture(bound.binding), SCALIDE_UNSUPPORTED);
    EXPECT_STREQ(bound.message(), "launching: its loops have more than 65536 launches, so a run cannot be captured. Use scalide_run "
                                  "without scalide_capture.");
}

TEST(loops_on_cuda, are_launches_with_other_addresses) {
    const Standin standin;
    BoundLoop bound(3);
    const int before = host_code_runs;
    standin.reset(-1, 0);
    ASSERT_EQ(scalide_run(bound.binding), SCALIDE_OK) << bound.message();
    EXPECT_EQ(host_code_runs, before + 3);
    EXPECT_EQ(count_calls(standin, "cuLaunchKernel"), 6);
    const std::vector<std::string> calls = standin.calls();
    for (size_t number = 0; number < calls.size(); ++number) {
        if (calls[number] == "cuCtxPopCurrent") continue; // nothing depends on it
        SCOPED_TRACE(calls[number]);
        scalide_binding_destroy(bound.binding);
        bound.bind();
        standin.reset(static_cast<int64_t>(number), 999);
        EXPECT_EQ(scalide_run(bound.binding), SCALIDE_DEVICE_FAILED);
        standin.reset(-1, 0);
        EXPECT_EQ(scalide_run(bound.binding), SCALIDE_DEVICE_FAILED) << "the failure stays";
    }
}

TEST_F(matmul, in_a_loop_takes_the_arrays_of_each_step) {
    const Context context(SCALIDE_CUDA);
    Products products(context.handle, 48);
    // The second product reads u, then the result and then the spare memory of a carry that no step writes.
    constexpr int32_t u = 3;
    scalide_program program = *products.program;
    std::vector<scalide_buffer> buffers(program.buffers, program.buffers + program.buffer_count);
    std::vector<scalide_step> steps(program.steps, program.steps + program.step_count);
    const int32_t of_u = program.arguments[u].data_buffer, before = program.buffer_count, after = before + 1;
    const auto found = std::find_if(steps.begin(), steps.end(), [&](const scalide_step &step) { return step.matmul->lhs == of_u; });
    ASSERT_NE(found, steps.end());
    const auto step = static_cast<int32_t>(found - steps.begin());
    for (const char *name : {"u.before", "u.after"}) {
        buffers.push_back(buffers[static_cast<size_t>(of_u)]);
        buffers.back().name = name;
        buffers.back().storage = SCALIDE_STORAGE_ARENA;
        buffers.back().index = -1;
        buffers.back().first_step = buffers.back().last_step = step;
    }
    scalide_matmul matmul = *found->matmul;
    matmul.lhs = before;
    found->matmul = &matmul;
    std::vector<scalide_operand> operands(found->operands, found->operands + found->operand_count);
    for (scalide_operand &operand : operands)
        if (operand.kind == SCALIDE_OPERAND_BUFFER && operand.index == of_u) operand.index = before;
    found->operands = operands.data();
    BlockPlan blocks;
    blocks.block("scan z", SCALIDE_BLOCK_LOOP, -1, step, step + 1, 3).carries = {{of_u, before, after}};
    const scalide_program &with_block = *blocks.finish();
    program.buffers = buffers.data();
    program.buffer_count += 2;
    program.steps = steps.data();
    program.blocks = with_block.blocks;
    program.block_count = 1;
    products.program = &program;
    ASSERT_EQ(products.bind(), SCALIDE_OK) << scalide_message(context.handle);
    EXPECT_STREQ(products.step(static_cast<size_t>(step)).library, "cublaslt");
    const std::string at[] = {hex(products.arrays[u].data), hex(products.binding->memory[after]), hex(products.binding->memory[before])};
    for (int run = 0; run < 2; ++run) {
        reset();
        ASSERT_EQ(scalide_run(products.binding), SCALIDE_OK) << scalide_message(context.handle);
        const std::string log = read().log;
        size_t place = 0;
        for (const std::string &each : at) {
            place = log.find("    b layout type=2 64x48 ld=64 at " + each + "\n", place);
            ASSERT_NE(place, std::string::npos) << each << '\n' << log;
            ++place;
        }
        EXPECT_EQ(read().calls, 4);
    }
}
