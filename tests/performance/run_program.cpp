// run_program LIBRARY.so NAME THREADS SECONDS [symbol=value ...]: times a generated program on arrays of small random numbers and prints
// one JSON line: milliseconds of a run (minimum, median), and of each kernel of the plan when PER_KERNEL is set. When COPY is set it also
// times, between the runs, a copy that reads and writes as many bytes as the program's arguments have, in as many threads.
#include "bound_program.h"
#include <memory>
#include <thread>

namespace {

using namespace scalide::measuring;

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
            [](void *user, const scalide_traced *buffer, const scalide_array *) {
                Trace &trace = *static_cast<Trace *>(user);
                trace.times.emplace_back(buffer->name, milliseconds_since(trace.last) * 1e3);
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
    const BoundProgram bound(argv[1], argv[2], std::atoi(argv[3]), symbols_of(argc, argv, 5));
    scalide_context *context = bound.context;
    scalide_binding *binding = bound.binding;
    std::vector<double> times, copies;
    std::unique_ptr<Copy> copy(std::getenv("COPY") ? new Copy(bound.arguments.bytes, scalide_thread_count(context)) : nullptr);
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
                scalide_thread_count(context), times.front(), times[times.size() / 2], times.size(), bound.program->step_count);
    if (copy)
        std::printf(", \"bytes\": %zu, \"copy_ms_min\": %.4f", bound.arguments.bytes, *std::min_element(copies.begin(), copies.end()));
    std::printf("}\n");
    if (std::getenv("PER_KERNEL")) print_kernels(bound.program, binding, 50);
}
