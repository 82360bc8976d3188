// run_on_device LIBRARY.so NAME SECONDS: times a generated program of a device, with static extents, on arrays of small random numbers, as
// one graph where the device has graphs. Prints one JSON line: milliseconds of a run (the least mean of the groups of runs that fill
// SECONDS; each group is waited for once), bytes of its arguments, who computes each step and why. On CUDA it also times, between the
// groups, the driver's copy of as many bytes (read and written together).
#include "random_codes.h"
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <random>
#include <scalide/plan.h>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) { return std::chrono::duration<double, std::milli>(Clock::now() - start).count(); }

[[noreturn]] void fail(const char *message) {
    std::fprintf(stderr, "run_on_device: %s\n", message);
    std::exit(1);
}

scalide_context *context_of(int32_t device) {
    scalide_options options{};
    options.struct_size = sizeof options;
    options.device = device;
    scalide_context *context = nullptr;
    if (scalide_context_create(&options, &context) != SCALIDE_OK) fail(scalide_message(nullptr));
    return context;
}

std::vector<unsigned char> random_array(int32_t dtype, size_t count) {
    std::mt19937 random(1);
    const size_t width = scalide_dtype_size(dtype);
    std::vector<unsigned char> bytes(count * width);
    for (size_t i = 0; i < count; i++) {
        const uint32_t code = scalide::random_code(dtype, static_cast<uint32_t>(random()));
        std::memcpy(bytes.data() + i * width, &code, std::min(width, sizeof code));
    }
    return bytes;
}

/// Of a buffer without symbols.
std::vector<int64_t> shape_of(const scalide_buffer &buffer) {
    std::vector<int64_t> shape;
    for (int32_t axis = 0; axis < buffer.rank; axis++) {
        if (buffer.shape[axis].count > 0 && buffer.shape[axis].terms[0].symbol[0] >= 0) fail("the program's extents must be numbers");
        shape.push_back(buffer.shape[axis].count > 0 ? buffer.shape[axis].terms[0].coefficient : 0);
    }
    return shape;
}

/// The program's arrays in the memory of its device.
class Arguments {
public:
    Arguments(scalide_context *context, const scalide_program *program) : context_(context) {
        for (int32_t i = 0; i < program->argument_count; i++) {
            const scalide_buffer &buffer = program->buffers[program->arguments[i].data_buffer];
            const std::vector<int64_t> shape = shape_of(buffer);
            size_t count = 1;
            for (const int64_t extent : shape) count *= static_cast<size_t>(extent);
            const std::vector<unsigned char> values = random_array(buffer.dtype, count);
            bytes_ += values.size() * (program->arguments[i].role == SCALIDE_INOUT ? 2 : 1);
            const float one = 1;
            float *scale = program->arguments[i].scale_buffer >= 0 ? static_cast<float *>(copy(&one, sizeof one)) : nullptr;
            arrays_.push_back(scalide_dense_array(copy(values.data(), values.size()), scale, buffer.dtype, buffer.rank, shape.data()));
        }
    }

    const std::vector<scalide_array> &arrays() const { return arrays_; }
    size_t bytes() const { return bytes_; }
    void check(scalide_status status) const {
        if (status != SCALIDE_OK) fail(scalide_message(context_));
    }

private:
    void *copy(const void *from, size_t bytes) {
        void *memory = nullptr;
        check(scalide_allocate(context_, std::max<size_t>(bytes, 4), &memory));
        if (bytes > 0) check(scalide_copy_in(context_, memory, from, bytes));
        return memory;
    }

    scalide_context *context_;
    std::vector<scalide_array> arrays_;
    size_t bytes_ = 0;
};

/// The driver's copy inside of the memory of a CUDA device.
class DriverCopy {
public:
    DriverCopy(scalide_context *context, size_t bytes) : context_(context), bytes_(bytes / 2) {
        if (scalide_context_device(context) != SCALIDE_CUDA) return;
        void *driver = dlopen("libcuda.so.1", RTLD_NOW);
        copy_ = reinterpret_cast<Copy>(dlsym(driver, "cuMemcpyDtoDAsync_v2"));
        wait_ = reinterpret_cast<Wait>(dlsym(driver, "cuCtxSynchronize"));
        const auto retain = reinterpret_cast<int (*)(void **, int)>(dlsym(driver, "cuDevicePrimaryCtxRetain"));
        const auto enter = reinterpret_cast<int (*)(void *)>(dlsym(driver, "cuCtxSetCurrent"));
        void *primary = nullptr;
        if (!copy_ || !wait_ || !retain || !enter || retain(&primary, 0) != 0 || enter(primary) != 0) fail("no copy by the driver");
        if (scalide_allocate(context, bytes_, &from_) != SCALIDE_OK || scalide_allocate(context, bytes_, &to_) != SCALIDE_OK)
            fail(scalide_message(context));
    }

    bool is_there() const { return copy_ != nullptr; }
    double milliseconds(int count) const {
        const Clock::time_point start = Clock::now();
        for (int i = 0; i < count; i++)
            if (copy_(reinterpret_cast<unsigned long long>(to_), reinterpret_cast<unsigned long long>(from_), bytes_, nullptr) != 0)
                fail("a copy failed");
        wait_();
        return milliseconds_since(start) / count;
    }

private:
    using Copy = int (*)(unsigned long long, unsigned long long, size_t, void *);
    using Wait = int (*)();
    scalide_context *context_;
    size_t bytes_;
    void *from_ = nullptr, *to_ = nullptr;
    Copy copy_ = nullptr;
    Wait wait_ = nullptr;
};

void print_steps(const scalide_binding *binding, size_t count) {
    for (size_t step = 0; step < count; step++) {
        scalide_step_info info{};
        scalide_describe_step(binding, step, &info);
        std::printf("%s{\"step\": \"%s\", \"library\": \"%s\", \"reason\": \"%s\"}", step == 0 ? "" : ", ", info.name,
                    info.library ? info.library : "", info.reason ? info.reason : "");
    }
}

} // namespace

int main(int argc, char **argv) {
    if (argc != 4) fail("usage: run_on_device LIBRARY.so NAME SECONDS");
    scalide_context *loader = context_of(SCALIDE_CPU);
    scalide_library *library = nullptr;
    if (scalide_load(loader, argv[1], &library) != SCALIDE_OK) fail(scalide_message(loader));
    const scalide_program *program = scalide_library_program(loader, library, argv[2]);
    if (!program) fail(scalide_message(loader));
    scalide_context *context = context_of(scalide_program_device(program));
    const Arguments arguments(context, program);
    scalide_binding *binding = nullptr;
    arguments.check(scalide_bind(context, program, arguments.arrays().data(), arguments.arrays().size(), &binding));
    const scalide_status captured = scalide_capture(binding);
    if (captured != SCALIDE_UNSUPPORTED) arguments.check(captured);
    const auto time = [&](int count) {
        const Clock::time_point start = Clock::now();
        for (int i = 0; i < count; i++) arguments.check(scalide_run(binding));
        arguments.check(scalide_synchronise(context));
        return milliseconds_since(start) / count;
    };
    time(1);
    const int group = std::max(1, static_cast<int>(20 / std::max(time(3), 1e-3))); // about 20 ms
    const DriverCopy copy(context, arguments.bytes());
    double least = 1e30, least_copy = 1e30;
    const Clock::time_point start = Clock::now();
    do {
        least = std::min(least, time(group));
        if (copy.is_there()) least_copy = std::min(least_copy, copy.milliseconds(group));
    } while (milliseconds_since(start) < 1e3 * std::atof(argv[3]));
    std::printf("{\"device\": \"%s\", \"ms\": %.5f, \"bytes\": %zu, ", scalide_context_device_name(context), least, arguments.bytes());
    if (copy.is_there()) std::printf("\"copy_ms\": %.5f, ", least_copy);
    std::printf("\"captured\": %s, \"steps\": [", captured == SCALIDE_OK ? "true" : "false");
    print_steps(binding, scalide_step_count(program));
    std::printf("]}\n");
}
