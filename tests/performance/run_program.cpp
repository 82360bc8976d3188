// run_program LIBRARY.so NAME THREADS SECONDS [symbol=value ...]: times a generated program on arrays of small random numbers and prints
// one JSON line: milliseconds of a run (minimum, median), and of each kernel of the plan when PER_KERNEL is set. When COPY is set it also
// times, between the runs, a copy that reads and writes as many bytes as the program's arguments have, in as many threads.
#include "measuring.h"
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <scalide/plan.h>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace scalide::measuring;

[[noreturn]] void fail(const char *message) {
    std::fprintf(stderr, "run_program: %s\n", message);
    std::exit(1);
}

int64_t evaluate(const scalide_extent &extent, const scalide_program *program, const std::map<std::string, int64_t> &symbols) {
    int64_t sum = 0;
    for (int32_t i = 0; i < extent.count; i++) {
        int64_t product = extent.terms[i].coefficient;
        for (const int32_t symbol : extent.terms[i].symbol) product *= symbol < 0 ? 1 : symbols.at(program->symbols[symbol].name);
        sum += product;
    }
    return sum;
}

struct Arguments {
    std::vector<scalide_array> arrays;
    std::vector<void *> memory;
    std::vector<float> scales;
    size_t bytes = 0; ///< read and written; an array that is overwritten counts twice
};

/// A copy that moves `bytes`, half of them read, each thread its part.
class Copy {
public:
    Copy(size_t bytes, int threads) : from_(bytes / 2, 1), to_(bytes / 2), threads_(threads) {}
    double milliseconds() {
        const Clock::time_point begin = Clock::now();
        std::vector<std::thread> helpers;
        for (int i = 1; i < threads_; i++) helpers.emplace_back([this, i] { copy(i); });
        copy(0);
        for (std::thread &helper : helpers) helper.join();
        return milliseconds_since(begin);
    }

private:
    void copy(int part) {
        const size_t begin = from_.size() * part / threads_, end = from_.size() * (part + 1) / threads_;
        std::memcpy(to_.data() + begin, from_.data() + begin, end - begin);
        asm volatile("" : : "r"(to_.data()) : "memory");
    }

    std::vector<char> from_, to_;
    int threads_;
};

Arguments make_arguments(const scalide_program *program, const std::map<std::string, int64_t> &symbols) {
    std::mt19937 random(1);
    Arguments arguments;
    arguments.scales.assign(static_cast<size_t>(program->argument_count), 1.0f);
    for (int32_t i = 0; i < program->argument_count; i++) {
        const scalide_buffer &buffer = program->buffers[program->arguments[i].data_buffer];
        int64_t shape[SCALIDE_MAX_RANK];
        size_t count = 1;
        for (int32_t axis = 0; axis < buffer.rank; axis++)
            count *= static_cast<size_t>(shape[axis] = evaluate(buffer.shape[axis], program, symbols));
        const size_t exact = count * scalide_dtype_size(buffer.dtype), bytes = (exact + 63) / 64 * 64;
        arguments.bytes += exact * (program->arguments[i].role == SCALIDE_INOUT ? 2 : 1);
        void *data = std::aligned_alloc(64, bytes);
        std::memset(data, 0, bytes);
        fill(data, buffer.dtype, count, random);
        float *scale = program->arguments[i].scale_buffer >= 0 ? &arguments.scales[static_cast<size_t>(i)] : nullptr;
        arguments.arrays.push_back(scalide_dense_array(data, scale, buffer.dtype, buffer.rank, shape));
    }
    return arguments;
}

// One more run, traced: the time between two callbacks is that of the kernel that made the second one's buffer.
void print_kernels(const scalide_program *program, scalide_binding *binding, int runs) {
    struct Trace {
        Clock::time_point last;
        std::vector<std::pair<std::string, double>> times;
    };
    std::map<std::string, double> least;
    for (int run = 0; run < runs; run++) {
        Trace trace{Clock::now(), {}};
        scalide_run_traced(
            binding,
            [](void *user, const char *name, const scalide_array *) {
                Trace &trace = *static_cast<Trace *>(user);
                trace.times.emplace_back(name, milliseconds_since(trace.last) * 1e3);
                trace.last = Clock::now();
            },
            &trace);
        for (const auto &[name, time] : trace.times) least[name] = least.count(name) ? std::min(least[name], time) : time;
    }
    for (int32_t step = 0; step < program->step_count; step++) {
        for (int32_t b = 0; b < program->buffer_count; b++) {
            const scalide_buffer &buffer = program->buffers[b];
            if (buffer.first_step == step && least[buffer.name] > 0.5) {
                std::printf("  %2d %-14s %-20s %8.1f us\n", step, program->steps[step].name, buffer.name, least[buffer.name]);
            }
        }
    }
}

} // namespace

int main(int argc, char **argv) {
    if (argc < 5) fail("usage: run_program LIBRARY.so NAME THREADS SECONDS [symbol=value ...]");
    std::map<std::string, int64_t> symbols;
    for (int i = 5; i < argc; i++) {
        const std::string text = argv[i];
        symbols[text.substr(0, text.find('='))] = std::atoll(text.c_str() + text.find('=') + 1);
    }
    scalide_options options{};
    options.struct_size = sizeof options;
    options.threads = std::atoi(argv[3]);
    scalide_context *context = nullptr;
    if (scalide_context_create(&options, &context) != SCALIDE_OK) fail("no context");
    scalide_library *library = nullptr;
    if (scalide_load(context, argv[1], &library) != SCALIDE_OK) fail(scalide_message(context));
    const scalide_program *program = scalide_library_program(context, library, argv[2]);
    if (!program) fail(scalide_message(context));
    Arguments arguments = make_arguments(program, symbols);
    scalide_binding *binding = nullptr;
    if (scalide_bind(context, program, arguments.arrays.data(), arguments.arrays.size(), &binding) != SCALIDE_OK)
        fail(scalide_message(context));
    std::vector<double> times, copies;
    std::unique_ptr<Copy> copy(std::getenv("COPY") ? new Copy(arguments.bytes, scalide_thread_count(context)) : nullptr);
    for (int i = 0; i < 20; i++) scalide_run(binding);
    const Clock::time_point start = Clock::now();
    while (milliseconds_since(start) < 1e3 * std::atof(argv[4])) {
        const Clock::time_point begin = Clock::now();
        if (scalide_run(binding) != SCALIDE_OK) fail(scalide_message(context));
        times.push_back(milliseconds_since(begin));
        if (copy) copies.push_back(copy->milliseconds());
    }
    std::sort(times.begin(), times.end());
    std::printf("{\"program\": \"%s\", \"threads\": %d, \"ms_min\": %.4f, \"ms_median\": %.4f, \"runs\": %zu, \"kernels\": %d", argv[2],
                scalide_thread_count(context), times.front(), times[times.size() / 2], times.size(), program->step_count);
    if (copy) std::printf(", \"bytes\": %zu, \"copy_ms_min\": %.4f", arguments.bytes, *std::min_element(copies.begin(), copies.end()));
    std::printf("}\n");
    if (std::getenv("PER_KERNEL")) print_kernels(program, binding, 50);
}
