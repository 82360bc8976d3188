// run_on_device LIBRARY.so NAME SECONDS [--check CPU_LIBRARY.so] [--nonnegative ARGUMENT] [--profile RUNS] [--bare LHS RHS OUT M N K]:
// times a generated program of a device, with static extents, on arrays of small random numbers, as one graph where the device has graphs.
// Prints one JSON line: milliseconds of a run (the least mean of the groups of runs that fill SECONDS; each group is waited for once) and
// of binding (code is loaded, algorithms are found), bytes of its arguments, who computes each step and why. --check: the largest error of
// the first run beside the same program for the CPU. --profile: the time of each step, alone, in the fastest of RUNS runs; it includes the
// wait for its end, about 10 us. On CUDA it also times, between the groups, the driver's copy of as many bytes (read and written together)
// and, where asked, a bare call of cuBLASLt for a product of two matrices [M, K] and [N, K].
#include "cublaslt/cublaslt.h"
#include "device_arguments.h"
#include "support/cuda/bare_matmul.h"
#include "support/cuda/driver.h"
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <scalide/plan.h>
#include <string>
#include <vector>

namespace {

using namespace scalide::measuring;
using scalide::Driver;

/// The baseline: work of the driver or of cuBLASLt on one stream, without code of Scalide around it.
class Rival {
public:
    Rival(const Driver &driver, std::string name, std::function<void()> start)
        : driver_(driver), name_(std::move(name)), start_(std::move(start)) {}

    const std::string &name() const { return name_; }
    double least() const { return least_; }
    void time(int count) {
        const Clock::time_point start = Clock::now();
        for (int i = 0; i < count; i++) start_();
        driver_.wait();
        least_ = std::min(least_, milliseconds_since(start) / count);
    }

private:
    const Driver &driver_;
    std::string name_;
    std::function<void()> start_;
    double least_ = 1e30;
};

void *allocate(scalide_context *context, size_t bytes) {
    void *memory = nullptr;
    if (scalide_allocate(context, bytes, &memory) != SCALIDE_OK) fail(scalide_message(context));
    return memory;
}

/// The driver's copy of as many bytes, read and written together.
Rival copy_of(const Driver &driver, scalide_context *context, size_t bytes) {
    void *from = allocate(context, bytes / 2 + 1), *to = allocate(context, bytes / 2 + 1);
    return {driver, "copy", [&driver, from, to, bytes] { driver.copy(to, from, bytes / 2); }};
}

int32_t dtype_of(const std::string &name) {
    int32_t dtype = 0;
    while (dtype < 32 && scalide_dtype_name(dtype) != name) dtype++;
    return dtype;
}

/// `LHS RHS OUT M N K`: lhs [M, K] times rhs [N, K], by the first algorithm of the heuristic.
Rival bare_product(const Driver &driver, scalide_context *context, char **words) {
    char why_words[512] = "";
    scalide::Text why(why_words, sizeof why_words);
    const scalide::CublasLt *library = scalide::load_cublaslt(why);
    if (!library) fail(why_words);
    const int64_t m = std::atoll(words[3]), n = std::atoll(words[4]), k = std::atoll(words[5]);
    std::mt19937 random(1);
    const auto operand = [&](const char *name, int64_t count) {
        std::vector<unsigned char> codes(static_cast<size_t>(count) * scalide_dtype_size(dtype_of(name)));
        fill(codes.data(), dtype_of(name), static_cast<size_t>(count), random);
        void *memory = allocate(context, codes.size());
        if (scalide_copy_in(context, memory, codes.data(), codes.size()) != SCALIDE_OK) fail(scalide_message(context));
        return memory;
    };
    // cuBLASLt's matrices are column-major: its A is our rhs.
    const scalide::BareDesc desc{.a = scalide::cublaslt_type(dtype_of(words[1])),
                                 .b = scalide::cublaslt_type(dtype_of(words[0])),
                                 .d = scalide::cublaslt_type(dtype_of(words[2])),
                                 .m = n,
                                 .n = m,
                                 .k = k};
    const scalide::BarePointers pointers{.a = operand(words[1], n * k),
                                         .b = operand(words[0], m * k),
                                         .d = operand(words[2], m * n),
                                         .workspace = allocate(context, scalide::bare_workspace)};
    const auto product = std::make_shared<scalide::BareMatmul>(*library, desc, pointers);
    const auto found = product->candidates(1);
    if (found.empty()) fail("cuBLASLt has no algorithm");
    return {driver, "bare", [&driver, product, algorithm = found[0].algorithm] {
                if (product->run(algorithm, driver.stream()) != 0) fail("a bare product failed");
            }};
}

void print_steps(const scalide_binding *binding, const std::vector<scalide_step_profile> &profile) {
    for (size_t step = 0; step < profile.size(); step++) {
        scalide_step_info info{};
        scalide_describe_step(binding, step, &info);
        std::printf("%s{\"step\": \"%s\", \"library\": \"%s\", \"reason\": \"%s\", \"ms\": %.5f}", step == 0 ? "" : ", ", info.name,
                    info.library ? info.library : "", info.reason ? info.reason : "", 1e3 * profile[step].seconds);
    }
}

struct Options {
    const char *library, *name, *cpu_library = nullptr, *nonnegative = nullptr;
    double seconds;
    int profiled_runs = 0;
    char **bare = nullptr;
};

Options options_of(int argc, char **argv) {
    if (argc < 4)
        fail("usage: run_on_device LIBRARY.so NAME SECONDS [--check CPU_LIBRARY.so] [--nonnegative ARGUMENT] [--profile RUNS] [--bare LHS "
             "RHS OUT M N K]");
    Options options{.library = argv[1], .name = argv[2], .seconds = std::atof(argv[3])};
    for (int i = 4; i < argc; i++) {
        const std::string word = argv[i];
        const int left = argc - 1 - i;
        if (word == "--check" && left >= 1)
            options.cpu_library = argv[++i];
        else if (word == "--nonnegative" && left >= 1)
            options.nonnegative = argv[++i];
        else if (word == "--profile" && left >= 1)
            options.profiled_runs = std::atoi(argv[++i]);
        else if (word == "--bare" && left >= 6)
            options.bare = argv + i + 1, i += 6;
        else
            fail("unknown or incomplete option " + word);
    }
    return options;
}

} // namespace

int main(int argc, char **argv) {
    const Options options = options_of(argc, argv);
    scalide_context *loader = context_of(SCALIDE_CPU);
    const scalide_program *program = load(loader, options.library, options.name);
    scalide_context *context = context_of(scalide_program_device(program));
    const Arguments arguments(context, program, options.nonnegative);
    scalide_binding *binding = nullptr;
    const Clock::time_point before_bind = Clock::now();
    check(context, scalide_bind(context, program, arguments.arrays().data(), arguments.arrays().size(), &binding));
    const double bind_ms = milliseconds_since(before_bind);
    const scalide_status captured = scalide_capture(binding);
    if (captured != SCALIDE_UNSUPPORTED) check(context, captured);
    const auto time = [&](int count) {
        const Clock::time_point start = Clock::now();
        for (int i = 0; i < count; i++) check(context, scalide_run(binding));
        check(context, scalide_synchronise(context));
        return milliseconds_since(start) / count;
    };
    time(1);
    const double error = options.cpu_library ? error_beside_cpu(arguments, options.cpu_library, options.name, options.nonnegative) : 0;
    const int group = std::max(1, static_cast<int>(20 / std::max(time(3), 1e-3))); // about 20 ms
    std::optional<Driver> driver;
    std::vector<Rival> rivals;
    if (scalide_context_device(context) == SCALIDE_CUDA) {
        driver.emplace();
        rivals.push_back(copy_of(*driver, context, arguments.bytes()));
        if (options.bare) rivals.push_back(bare_product(*driver, context, options.bare));
    }
    double least = 1e30;
    const Clock::time_point start = Clock::now();
    do {
        least = std::min(least, time(group));
        for (Rival &rival : rivals) rival.time(group);
    } while (milliseconds_since(start) < 1e3 * options.seconds);
    std::vector<scalide_step_profile> profile(scalide_step_count(binding));
    if (options.profiled_runs > 0) check(context, scalide_profile(binding, options.profiled_runs, profile.data(), profile.size()));
    std::printf("{\"device\": \"%s\", \"ms\": %.5f, \"bytes\": %zu, \"bind_ms\": %.2f, ", scalide_context_device_name(context), least,
                arguments.bytes(), bind_ms);
    if (options.cpu_library) std::printf("\"error\": %g, ", std::isfinite(error) ? error : 1e30);
    for (const Rival &rival : rivals) std::printf("\"%s_ms\": %.5f, ", rival.name().c_str(), rival.least());
    std::printf("\"captured\": %s, \"steps\": [", captured == SCALIDE_OK ? "true" : "false");
    print_steps(binding, profile);
    std::printf("]}\n");
}
