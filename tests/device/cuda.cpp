// device.cuda.*: the real runtime on an emulated CUDA driver, which logs every call and can let any call fail.
#include "elementwise.h"
#include "elementwise_cuda.h"
#include "launching_program.h"
#include "standin_driver.h"
#include <algorithm>
#include <dlfcn.h>
#include <functional>
#include <sstream>

using namespace scalide::test;

namespace {

constexpr int32_t out_of_memory = 2, no_device = 100, no_binary = 209, unknown = 999;

class cuda : public testing::Test {
protected:
    void SetUp() override { standin.reset(-1, 0); }
    void TearDown() override { EXPECT_EQ(standin.live(), 0u); }
    Standin standin;
};

/// Arrays of launching_program in the memory of a context.
struct Launching {
    static constexpr int64_t b = 6;
    scalide_context *context;
    scalide_status status;
    void *x = nullptr, *loss = nullptr;
    scalide_binding *binding = nullptr;

    explicit Launching(scalide_context *owner) : context(owner) {
        const std::vector<float> content(4 * b, 1);
        status = scalide_allocate(context, 4 * 4 * b, &x);
        if (status == SCALIDE_OK) status = scalide_copy_in(context, x, content.data(), 4 * 4 * b);
        if (status == SCALIDE_OK) status = scalide_allocate(context, 4, &loss);
        if (status == SCALIDE_OK) status = bind();
    }
    Launching(const Launching &) = delete;
    Launching &operator=(const Launching &) = delete;
    ~Launching() {
        scalide_binding_destroy(binding);
        scalide_release(context, x);
        scalide_release(context, loss);
    }

    scalide_array x_array() const {
        const int64_t shape[] = {b, 4};
        return scalide_dense_array(x, nullptr, SCALIDE_F32, 2, shape);
    }
    scalide_status bind() {
        const scalide_array arrays[] = {x_array(), scalide_dense_array(loss, nullptr, SCALIDE_F32, 0, nullptr)};
        return scalide_bind(context, launching_program(), arrays, 2, &binding);
    }
};

std::string number(const void *address) { return std::to_string(reinterpret_cast<uintptr_t>(address)); }

/// What an application does with a context: the first status that is not OK.
scalide_status use(scalide_context *context) {
    Launching arrays(context);
    scalide_status status = arrays.status;
    const auto next = [&](scalide_status step) {
        if (status == SCALIDE_OK) status = step;
        return status == SCALIDE_OK;
    };
    double loss;
    const scalide_array x = arrays.x_array();
    next(status) && next(scalide_run(arrays.binding)) && next(scalide_run(arrays.binding)) && next(scalide_synchronise(context)) &&
        next(scalide_capture(arrays.binding)) && next(scalide_run(arrays.binding)) && next(scalide_set_argument(arrays.binding, 0, &x)) &&
        next(scalide_run(arrays.binding)) && next(scalide_read_scalar(arrays.binding, "loss", &loss));
    return status;
}

std::string words_of(const Context &context) { return context.handle ? scalide_message(context.handle) : context.message; }

std::string create(int32_t device_index, void *stream, scalide_status wanted) {
    const Context context(SCALIDE_CUDA, stream, device_index);
    EXPECT_EQ(context.status, wanted);
    return context.message;
}

} // namespace

TEST_F(cuda, a_run_launches_and_does_nothing_else) {
    const Context context(SCALIDE_CUDA);
    ASSERT_EQ(context.status, SCALIDE_OK) << context.message;
    const Launching arrays(context.handle);
    ASSERT_EQ(arrays.status, SCALIDE_OK) << scalide_message(context.handle);
    EXPECT_STREQ(scalide_context_device_name(context.handle), "stand-in 0");
    const int before = host_code_runs;
    ASSERT_EQ(scalide_run(arrays.binding), SCALIDE_OK);
    standin.reset(-1, 0);
    ASSERT_EQ(scalide_run(arrays.binding), SCALIDE_OK);
    const std::vector<std::string> calls = standin.calls();
    ASSERT_EQ(calls.size(), 4u) << testing::PrintToString(calls);
    EXPECT_EQ(calls[0], "cuCtxPushCurrent");
    EXPECT_EQ(calls[1].rfind("cuLaunchKernel rows.3 blocks 6 1 1 threads 64 1 1 shared 65536 arguments " + number(arrays.x) + " ", 0), 0u)
        << calls[1];
    EXPECT_EQ(calls[1].substr(calls[1].rfind(' ')), " 4");
    EXPECT_EQ(calls[2].rfind("cuLaunchKernel sum.4 blocks 1 1 1 threads 32 1 1 shared 0 arguments ", 0), 0u) << calls[2];
    EXPECT_EQ(calls[3], "cuCtxPopCurrent");
    EXPECT_EQ(host_code_runs, before);
}

TEST_F(cuda, a_binding_outlives_the_handle_of_its_context) {
    scalide_binding *binding = nullptr;
    {
        const Context context(SCALIDE_CUDA);
        const Launching arrays(context.handle); // their memory is released before the context
        const scalide_array descriptors[] = {arrays.x_array(), scalide_dense_array(arrays.loss, nullptr, SCALIDE_F32, 0, nullptr)};
        ASSERT_EQ(scalide_bind_like(context.handle, arrays.binding, descriptors, 2, &binding), SCALIDE_OK)
            << scalide_message(context.handle);
    }
    EXPECT_EQ(scalide_run(binding), SCALIDE_OK);
    scalide_binding_destroy(binding); // TearDown looks for what is left
}

TEST_F(cuda, what_a_kernel_keeps_the_arena_and_scalars_are_on_the_device) {
    const Context context(SCALIDE_CUDA);
    const Launching arrays(context.handle);
    standin.reset(-1, 0);
    ASSERT_EQ(scalide_run(arrays.binding), SCALIDE_OK);
    const std::vector<std::string> calls = standin.calls();
    std::istringstream rows(calls.at(1).substr(calls[1].find("arguments ") + 10)),
        sum(calls.at(2).substr(calls[2].find("arguments ") + 10));
    uint64_t x, kept, read, loss, weights, size;
    rows >> x >> kept;
    sum >> read >> loss >> weights >> size;
    EXPECT_EQ(kept, read);
    EXPECT_EQ(loss, reinterpret_cast<uintptr_t>(arrays.loss));
    float content[4], number; // a copy of what is no memory of the device fails
    EXPECT_EQ(scalide_copy_out(context.handle, content, reinterpret_cast<void *>(weights), sizeof content), SCALIDE_OK);
    EXPECT_EQ(scalide_copy_out(context.handle, &number, reinterpret_cast<void *>(size), sizeof number), SCALIDE_OK);
    const uint64_t kept_end = kept + 4 * Launching::b;
    EXPECT_TRUE(kept_end <= weights || weights + 16 <= kept) << "nothing overlaps";
    EXPECT_TRUE(kept_end <= size || size + 4 <= kept) << "nothing overlaps";
}

TEST_F(cuda, functions_are_loaded_by_bind_and_modules_go_with_their_last_binding) {
    const Context context(SCALIDE_CUDA);
    standin.reset(-1, 0);
    const auto first = std::make_unique<Launching>(context.handle);
    const auto count = [&](const std::string &name) {
        const std::vector<std::string> calls = standin.calls();
        return std::count_if(calls.begin(), calls.end(), [&](const std::string &call) { return call.rfind(name, 0) == 0; });
    };
    EXPECT_EQ(count("cuModuleLoadDataEx"), 1);
    EXPECT_EQ(count("cuModuleGetFunction"), 2);
    EXPECT_EQ(count("cuFuncSetAttribute rows.3 8 65536"), 1);
    EXPECT_EQ(count("cuFuncSetAttribute"), 1);
    auto second = std::make_unique<Launching>(context.handle);
    EXPECT_EQ(count("cuModuleLoadDataEx"), 1);
    second.reset();
    EXPECT_EQ(count("cuModuleUnload"), 0);
    EXPECT_EQ(scalide_run(first->binding), SCALIDE_OK);
}

TEST_F(cuda, a_profile_is_the_time_between_events) {
    const Context context(SCALIDE_CUDA);
    const Launching arrays(context.handle);
    std::vector<scalide_step_profile> steps(scalide_step_count(arrays.binding));
    standin.reset(-1, 0);
    ASSERT_EQ(scalide_profile(arrays.binding, 1, steps.data(), steps.size()), SCALIDE_OK) << scalide_message(context.handle);
    std::vector<std::string> names;
    for (const std::string &call : standin.calls()) names.push_back(call.substr(0, call.find(' ')));
    EXPECT_EQ(names, (std::vector<std::string>{"cuCtxPushCurrent", "cuEventCreate", "cuEventCreate", "cuEventRecord", "cuLaunchKernel",
                                               "cuLaunchKernel", "cuEventRecord", "cuEventSynchronize", "cuEventElapsedTime",
                                               "cuEventDestroy", "cuEventDestroy", "cuCtxPopCurrent"}));
    EXPECT_NEAR(steps[0].seconds, 3e-6, 1e-9) << "three calls of a microsecond between the events";
}

TEST_F(cuda, a_profile_names_the_call_that_failed) {
    for (int64_t failing = 0; failing < 12; failing++) {
        const Context context(SCALIDE_CUDA);
        const Launching arrays(context.handle);
        std::vector<scalide_step_profile> steps(scalide_step_count(arrays.binding));
        standin.reset(failing, 1);
        const scalide_status status = scalide_profile(arrays.binding, 1, steps.data(), steps.size());
        const std::string call = standin.calls()[static_cast<size_t>(failing)], name = call.substr(0, call.find(' '));
        const bool is_last = name == "cuEventDestroy" || name == "cuCtxPopCurrent"; // nothing depends on them
        EXPECT_EQ(status != SCALIDE_OK, !is_last) << call;
        if (!is_last) EXPECT_NE(std::string(scalide_message(context.handle)).find(name + " failed"), std::string::npos) << call;
        standin.reset(-1, 0);
    }
    EXPECT_EQ(standin.live(), 0u);
}

TEST_F(cuda, a_captured_run_is_one_launch_of_a_graph) {
    const Context context(SCALIDE_CUDA);
    const Launching arrays(context.handle), other(context.handle);
    standin.reset(-1, 0);
    ASSERT_EQ(scalide_capture(arrays.binding), SCALIDE_OK) << scalide_message(context.handle);
    std::vector<std::string> calls = standin.calls();
    ASSERT_EQ(calls.size(), 10u) << testing::PrintToString(calls);
    const char *order[] = {"cuCtxPushCurrent",     "cuStreamBeginCapture 1", "cuCtxPushCurrent",   "cuLaunchKernel rows.3",
                           "cuLaunchKernel sum.4", "cuCtxPopCurrent",        "cuStreamEndCapture", "cuGraphInstantiate 0",
                           "cuGraphDestroy",       "cuCtxPopCurrent"};
    for (size_t i = 0; i < calls.size(); i++) EXPECT_EQ(calls[i].rfind(order[i], 0), 0u) << calls[i];
    standin.reset(-1, 0);
    ASSERT_EQ(scalide_run(arrays.binding), SCALIDE_OK);
    EXPECT_EQ(standin.calls(), (std::vector<std::string>{"cuCtxPushCurrent", "cuGraphLaunch 2", "cuCtxPopCurrent"}));
    const scalide_array x = other.x_array();
    standin.reset(-1, 0);
    ASSERT_EQ(scalide_set_argument(arrays.binding, 0, &x), SCALIDE_OK);
    calls = standin.calls();
    EXPECT_EQ(std::count(calls.begin(), calls.end(), "cuGraphInstantiate 0"), 1);
    EXPECT_TRUE(std::any_of(calls.begin(), calls.end(), [&](const std::string &call) {
        return call.find("rows.3") != std::string::npos && call.find(number(other.x)) != std::string::npos;
    })) << testing::PrintToString(calls);
}

/// A whole life in which the call of this number fails; false when there is no such call. With `again` the context is used once more after
/// the failure. Counts failures that were reported.
bool live_with_failing_call(const Standin &standin, int64_t number, int32_t error, bool again, int *reported) {
    standin.reset(number, error);
    const auto is_reached = [&] { return static_cast<int64_t>(standin.calls().size()) > number; };
    {
        const Context context(SCALIDE_CUDA);
        const scalide_status status = context.status == SCALIDE_OK ? use(context.handle) : context.status;
        *reported += status != SCALIDE_OK;
        EXPECT_EQ(status == SCALIDE_OK, words_of(context).empty()) << number << ' ' << status << ' ' << words_of(context);
        if (again && !is_reached()) {
            standin.reset(-1, 0);
            return false;
        }
        if (again && context.handle) {
            EXPECT_EQ(use(context.handle), SCALIDE_OK) << number << ' ' << scalide_message(context.handle);
        }
    }
    if (!is_reached()) return false;
    const std::string call = standin.calls()[static_cast<size_t>(number)];
    if (call == "cuCtxPushCurrent") standin.lose(); // who cannot enter cannot release
    EXPECT_EQ(standin.live(), 0u) << number << ' ' << call;
    return true;
}

void fail_each_call(const Standin &standin, int32_t error, bool again) {
    int reported = 0;
    int64_t number = 0;
    while (live_with_failing_call(standin, number, error, again, &reported)) number++;
    EXPECT_GT(reported, 40) << "of " << number;
}

TEST_F(cuda, every_failing_call_is_a_status_with_words) {
    for (const int32_t error : {out_of_memory, unknown}) fail_each_call(standin, error, false);
}

TEST_F(cuda, after_any_failing_call_the_context_works) { fail_each_call(standin, unknown, true); }

TEST_F(cuda, errors_of_the_driver_say_what_to_do) {
    standin.reset(0, no_device);
    EXPECT_EQ(create(0, nullptr, SCALIDE_NO_DEVICE),
              "no CUDA GPU found: CUDA_ERROR_NO_DEVICE (no CUDA-capable device is detected). Check that 'nvidia-smi' lists a "
              "GPU.");
    standin.reset(-1, 0);
    EXPECT_EQ(create(2, nullptr, SCALIDE_NO_DEVICE), "device_index must be less than the number of CUDA devices, 2, got 2.");
}

TEST_F(cuda, kernels_for_another_card_are_refused) {
    const Context context(SCALIDE_CUDA);
    Launching arrays(context.handle);
    scalide_binding_destroy(arrays.binding);
    standin.reset(-1, 0);
    ASSERT_EQ(arrays.bind(), SCALIDE_OK);
    const std::vector<std::string> calls = standin.calls();
    scalide_binding_destroy(arrays.binding);
    standin.reset(std::find(calls.begin(), calls.end(), "cuModuleLoadDataEx") - calls.begin(), no_binary);
    EXPECT_EQ(arrays.bind(), SCALIDE_WRONG_DEVICE);
    EXPECT_STREQ(scalide_message(context.handle),
                 "launching.row_sums: cuModuleLoadDataEx failed: CUDA_ERROR_NO_BINARY_FOR_GPU (stand-in) the assembler's words. "
                 "Build the program for this device.");
}

/// By the name in the message of a bind without arrays.
TEST_F(cuda, the_variant_of_the_largest_capability_that_a_card_has_is_bound) {
    const auto named = [](const char *name) {
        scalide_program program = *launching_program();
        program.name = name;
        return program;
    };
    const scalide_program sm_80 = named("sm_80"), sm_86 = named("sm_86"), sm_90 = named("sm_90");
    const scalide_variant variants[] = {
        {86, &sm_86, 0, {}, {}}, {80, &sm_80, 0, {}, {}}, {90, &sm_90, 0, {}, {}}, {100, nullptr, 0, {}, {}}};
    scalide_program program = named("any");
    program.variants = variants;
    program.variant_count = 4;
    const std::pair<int32_t, std::string> expected[] = {{75, "any"},   {80, "sm_80"}, {83, "sm_80"}, {86, "sm_86"},
                                                        {89, "sm_86"}, {90, "sm_90"}, {100, "any"},  {120, "any"}};
    for (const auto &[capability, chosen] : expected) {
        standin.capability(capability);
        const Context context(SCALIDE_CUDA);
        scalide_binding *binding = nullptr;
        EXPECT_EQ(scalide_bind(context.handle, &program, nullptr, 0, &binding), SCALIDE_INVALID_ARGUMENT);
        EXPECT_EQ(std::string(scalide_message(context.handle)).find(chosen + ": the number of arrays"), 0u)
            << capability << ": " << scalide_message(context.handle);
    }
    standin.capability(90);
}

TEST_F(cuda, host_memory_is_refused) {
    const Context context(SCALIDE_CUDA);
    Launching arrays(context.handle);
    std::vector<float> host(64);
    void *const x = arrays.x;
    arrays.x = host.data();
    scalide_binding_destroy(arrays.binding);
    EXPECT_EQ(arrays.bind(), SCALIDE_INVALID_ARGUMENT);
    EXPECT_STREQ(scalide_message(context.handle), "launching.x: data must point to memory of the context's device. "
                                                  "Allocate it with scalide_allocate and copy to it with scalide_copy_in.");
    arrays.x = x;
}

TEST_F(cuda, arrays_begin_at_whole_accesses) {
    const Context context(SCALIDE_CUDA);
    Launching arrays(context.handle);
    void *const x = arrays.x;
    arrays.x = static_cast<char *>(x) + 8;
    scalide_binding_destroy(arrays.binding);
    EXPECT_EQ(arrays.bind(), SCALIDE_INVALID_ARGUMENT);
    EXPECT_STREQ(scalide_message(context.handle), "launching.x: data must be aligned to 16 bytes; this address is 8 bytes past a "
                                                  "16-byte boundary. Use scalide_allocate or aligned_alloc(64, size).");
    arrays.x = x;
}

TEST_F(cuda, what_the_card_cannot_launch_is_refused_by_bind) {
    const Context context(SCALIDE_CUDA);
    launching_shared_bytes = 300 << 10;
    const Launching arrays(context.handle);
    launching_shared_bytes = default_launching_shared_bytes;
    EXPECT_EQ(arrays.status, SCALIDE_DEVICE_FAILED);
    EXPECT_STREQ(scalide_message(context.handle),
                 "launching.row_sums: a launch must have at most 232448 bytes of shared memory in a block on "
                 "this device, got 307200. Bind smaller arrays.");
}

TEST_F(cuda, a_stream_of_the_caller_is_used_and_left_alone) {
    const Context owner(SCALIDE_CUDA);
    auto *driver = dlopen("libcuda.so.1", RTLD_NOW);
    const auto push = reinterpret_cast<int (*)(void *)>(dlsym(driver, "cuCtxPushCurrent_v2"));
    const auto pop = reinterpret_cast<int (*)(void **)>(dlsym(driver, "cuCtxPopCurrent_v2"));
    const auto retain = reinterpret_cast<int (*)(void **, int)>(dlsym(driver, "cuDevicePrimaryCtxRetain"));
    const auto release = reinterpret_cast<int (*)(int)>(dlsym(driver, "cuDevicePrimaryCtxRelease_v2"));
    const auto make = reinterpret_cast<int (*)(void **, unsigned)>(dlsym(driver, "cuStreamCreate"));
    const auto destroy = reinterpret_cast<int (*)(void *)>(dlsym(driver, "cuStreamDestroy_v2"));
    void *primary, *stream;
    ASSERT_EQ(retain(&primary, 0), 0);
    push(primary);
    ASSERT_EQ(make(&stream, 1), 0);
    {
        const Context context(SCALIDE_CUDA, stream);
        ASSERT_EQ(context.status, SCALIDE_OK) << context.message;
        EXPECT_EQ(use(context.handle), SCALIDE_OK) << scalide_message(context.handle);
    }
    EXPECT_EQ(create(1, stream, SCALIDE_INVALID_ARGUMENT),
              "stream must belong to the primary context of CUDA device 1. Choose the device of the stream with device_index.");
    EXPECT_EQ(destroy(stream), 0) << "it is still there";
    void *current = nullptr;
    pop(&current);
    EXPECT_EQ(current, primary) << "the caller's current context is what it was";
    release(0);
}

TEST_F(cuda, a_generated_program_launches_its_kernels_in_order) {
    const Context context(SCALIDE_CUDA);
    Elementwise arrays(context.handle, 64);
    scalide_binding *binding = nullptr;
    ASSERT_EQ(arrays.bind(elementwise_cuda_program(), &binding), SCALIDE_OK) << scalide_message(context.handle);
    standin.reset(-1, 0);
    ASSERT_EQ(scalide_run(binding), SCALIDE_OK) << scalide_message(context.handle);
    std::vector<std::string> launches;
    for (const std::string &call : standin.calls()) {
        if (call.rfind("cuLaunchKernel", 0) == 0) launches.push_back(call);
    }
    const auto is_single = [](const std::string &launch) { return launch.find(" blocks 1 1 1 ") != std::string::npos; };
    ASSERT_GE(launches.size(), 3u);
    EXPECT_TRUE(is_single(launches.front())) << "t and the scale of w: " << launches.front();
    EXPECT_TRUE(is_single(launches.back())) << "the scale goes to its argument: " << launches.back();
    EXPECT_EQ(std::count_if(launches.begin() + 1, launches.end() - 1, std::not_fn(is_single)), 1) << testing::PrintToString(launches);
    EXPECT_EQ(standin.calls().size(), launches.size() + 2);
    scalide_binding_destroy(binding);
}
