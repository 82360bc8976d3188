// device.opencl_faults.*: each call to the OpenCL driver fails once. The linker redirects the runtime's dlsym to this file (--wrap), which
// wraps each function of the driver. Skipped without a driver.
#include "devices/opencl_abi.h"
#include "elementwise.h"
#include "elementwise_cpu.h"
#include "elementwise_opencl.h"
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <map>
#include <random>
#include <type_traits>

using namespace scalide::test;

namespace {

constexpr int32_t out_of_resources = -5;

std::string failed_call; // the last one
int calls = 0, call_to_fail = -1, live = 0;

bool begins(const char *name, const char *with) { return std::strncmp(name, with, std::strlen(with)) == 0; }

/// What a call makes of the number of things that are alive: contexts, queues, programs, kernels, memory.
int change_of(const char *name) {
    if (begins(name, "clRelease") || begins(name, "clSVMFree")) return -1;
    return begins(name, "clCreate") || begins(name, "clRetain") || begins(name, "clSVMAlloc") ? 1 : 0;
}

template<typename Name, typename Function>
struct Before;

template<typename Name, typename Result, typename... Parameters>
struct Before<Name, Result (*)(Parameters...)> {
    static inline Result (*real)(Parameters...) = nullptr;

    static Result call(Parameters... parameters) {
        const bool fails = calls++ == call_to_fail && !std::is_void_v<Result>;
        if (fails) failed_call = Name::text;
        if (fails && change_of(Name::text) >= 0) return failure(parameters...); // what is not released would be a leak of the driver's
        live += change_of(Name::text);
        if constexpr (std::is_void_v<Result>) {
            real(parameters...);
        } else {
            const Result result = real(parameters...);
            return fails ? failure(parameters...) : result;
        }
    }

private:
    static Result failure([[maybe_unused]] Parameters... parameters) {
        if constexpr (std::is_same_v<Result, int32_t>) return out_of_resources;
        if constexpr (std::is_pointer_v<Result>) {
            ((void)say(parameters), ...);
            return nullptr;
        }
    }
    template<typename Parameter>
    static void say([[maybe_unused]] Parameter parameter) {
        if constexpr (std::is_same_v<Parameter, int32_t *>) *parameter = out_of_resources;
    }
};

#define SCALIDE_NAME(result, name, arguments)                                                                                              \
    struct name_of_##name {                                                                                                                \
        static constexpr const char *text = #name;                                                                                         \
    };
SCALIDE_OPENCL_FUNCTIONS(SCALIDE_NAME)
#undef SCALIDE_NAME

void *put_before(const char *wanted, void *real) {
#define SCALIDE_PUT(result, name, arguments)                                                                                               \
    if (std::strcmp(wanted, #name) == 0) {                                                                                                 \
        using Ours = Before<name_of_##name, decltype(scalide::OpenClFunctions::name)>;                                                     \
        Ours::real = reinterpret_cast<decltype(Ours::real)>(real);                                                                         \
        return reinterpret_cast<void *>(&Ours::call);                                                                                      \
    }
    SCALIDE_OPENCL_FUNCTIONS(SCALIDE_PUT)
#undef SCALIDE_PUT
    return real;
}

/// What an application does with a context, and whether it got what the CPU gives; the first status that is not OK.
scalide_status use(scalide_context *context, const std::vector<unsigned char> &expected) {
    Elementwise arrays(context, 7);
    scalide_binding *binding = nullptr;
    scalide_status status = arrays.status;
    const auto next = [&](const auto &call) {
        if (status == SCALIDE_OK) status = call();
    };
    next([&] { return arrays.bind(elementwise_opencl_program(), &binding); });
    next([&] { return scalide_run(binding); });
    next([&] { return scalide_run(binding); });
    next([&] { return scalide_synchronise(context); });
    next([&] {
        const bool is_right = arrays.results() == expected;
        EXPECT_EQ(arrays.status == SCALIDE_OK, is_right);
        return arrays.status;
    });
    scalide_binding_destroy(binding);
    return status;
}

std::map<std::string, int> unnoticed; // calls that failed without a status

/// A context and its use while the call of this number fails, then its use once more. `queue`: the caller's, or NULL.
void live_with_failing_call(int number, void *queue, const std::vector<unsigned char> &expected) {
    const int live_before = live;
    calls = 0;
    call_to_fail = number;
    failed_call = "";
    {
        const Context context(SCALIDE_OPENCL, queue);
        const scalide_status status = context.status == SCALIDE_OK ? use(context.handle, expected) : context.status;
        const std::string words = context.handle ? scalide_message(context.handle) : context.message;
        EXPECT_EQ(status == SCALIDE_OK, words.empty()) << number << ' ' << failed_call << ": " << status << ' ' << words;
        if (status == SCALIDE_OK) ++unnoticed[failed_call];
        if (context.handle && status != SCALIDE_OK) {
            EXPECT_EQ(use(context.handle, expected), SCALIDE_OK) << failed_call << ": " << scalide_message(context.handle);
        }
    }
    EXPECT_EQ(live, live_before) << number << ' ' << failed_call;
}

/// A queue of its own on the first device, as an application may have one.
class Queue {
public:
    Queue() {
        void *library = dlopen("libOpenCL.so.1", RTLD_NOW);
#define SCALIDE_LOAD(result, name, arguments) cl_.name = reinterpret_cast<decltype(cl_.name)>(dlsym(library, #name));
        SCALIDE_OPENCL_FUNCTIONS(SCALIDE_LOAD)
#undef SCALIDE_LOAD
        scalide::ClHandle platform, device;
        int32_t error;
        cl_.clGetPlatformIDs(1, &platform, nullptr);
        cl_.clGetDeviceIDs(platform, scalide::cl_device_type_all, 1, &device, nullptr);
        context_ = cl_.clCreateContext(nullptr, 1, &device, nullptr, nullptr, &error);
        handle = cl_.clCreateCommandQueueWithProperties(context_, device, nullptr, &error);
    }
    Queue(const Queue &) = delete;
    Queue &operator=(const Queue &) = delete;
    ~Queue() {
        cl_.clReleaseCommandQueue(handle);
        cl_.clReleaseContext(context_);
    }
    scalide::ClHandle handle;

private:
    scalide::OpenClFunctions cl_;
    scalide::ClHandle context_;
};

void fail_calls(int step, void *queue) {
    const std::vector<unsigned char> expected = run(SCALIDE_CPU, elementwise_cpu_program(), 7, 2);
    live_with_failing_call(-1, queue, expected);
    const int count = calls, first = static_cast<int>(std::random_device()()) & (step - 1);
    SCOPED_TRACE("from call " + std::to_string(first));
    EXPECT_GT(count, 50);
    for (int number = first; number < count; number += step) live_with_failing_call(number, queue, expected);
    call_to_fail = -1;
}

} // namespace

extern "C" {
void *__real_dlsym(void *library, const char *name);
void *__wrap_dlsym(void *library, const char *name) {
    void *const real = __real_dlsym(library, name);
    return begins(name, "cl") && real ? put_before(name, real) : real;
}
}

// Every eighth call, from a random one on, or with SCALIDE_EVERY_CALL in the environment all.
TEST(opencl_faults, every_failing_call_is_a_status_with_words_and_the_context_works_again) {
    call_to_fail = -1;
    if (const Context context(SCALIDE_OPENCL); context.status == SCALIDE_NO_DEVICE) GTEST_SKIP() << context.message;
    const int step = std::getenv("SCALIDE_EVERY_CALL") ? 1 : 8;
    unnoticed.clear();
    fail_calls(step, nullptr);
    const Queue queue;
    fail_calls(step, queue.handle);
    // Nothing returns a status where memory, a binding or a context is given back; a name may be too long to be told.
    const std::map<std::string, int> silent = {{"clFinish", 22}, {"clGetDeviceInfo", 2}};
    for (const auto &[name, times] : unnoticed) {
        if (name.empty() || change_of(name.c_str()) < 0) continue;
        EXPECT_TRUE(silent.count(name) && times <= silent.at(name)) << name << " failed " << times << " times without a status";
    }
}
